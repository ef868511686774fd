"""Tells which decoder composes: tables and pictures from finished runs.

    python -m reproduction.decoders --runs=reproduction/decoders/evidence

judges every decoder on every split and writes decoders.csv, decoders.md and
decoders.png. For splits of sprites it also judges whether a decoder solves what
training determines, in solved.csv, solved.md and solved.png. `--plan` lists the
sweeps; your own decoder becomes a row if you add it to one (docs/decoders.md).
"""

from pathlib import Path
from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError
from tfcomp.config.settings import split_names
from tfcomp.storage.files import check_folder, make_folder

FLAGS = {
    "runs": (
        "",
        "Sweeps, or folders that contain them or packed evidence: patterns "
        "with *, separated by commas.",
    ),
    "output": ("decoders", "The folder for the tables and the pictures."),
}
# Data by the name of the table of its splits; shapes of the second have no
# copies.
TABLES = {"solved": "sprites", "distinct": "sprites:heart,triangle,l"}


def tabulate(settings: dict[str, Any]) -> int:
    """Judges runs; writes the tables and the pictures."""
    check_folder("output", settings["output"])
    # Imported here: bad flags must be answered without pandas.
    from reproduction.decoders import cells, report, splits
    from tfcomp.tables.read import Results, read_finished

    found = read_finished(split_names(settings["runs"]), history=False)
    # Controls on all combinations compose nothing.
    kept = [run for run in found.loaded if not run.row.get("train_all")]
    if not kept:
        rule = "must match finished runs without --train_all"
        raise ConfigError("runs", rule, settings["runs"])
    table = cells.read_table(Results(kept))
    output = make_folder(Path(settings["output"]))
    text = report.write_cells(cells.list_cells(table), output)
    for name, data in TABLES.items():
        text += report.write_splits(splits.list_rows(table, data), output, name)
    print(text, end="")
    print(f"tables  {output}")
    return 0


main = Command(__doc__, FLAGS, tabulate)
