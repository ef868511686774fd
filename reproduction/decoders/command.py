"""Tells which decoder composes: a table, a figure and a page.

    python -m reproduction.decoders --runs=reproduction/decoders/evidence

judges every decoder on every split, and writes decoders.csv, decoders.png and
decoders.md. Your own decoder becomes a row if you add it to one of the sweeps
(docs/decoders.md).
"""

from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import split_names
from tfcomp.storage.files import (
    check_folder,
    make_folder,
    write_bytes,
    write_text,
)

FLAGS = {
    "runs": (
        "reproduction/decoders/evidence",
        "Sweeps, or folders that contain them or packed evidence: patterns "
        "with *, separated by commas.",
    ),
    "output": ("decoders", "The folder for the table, figure and page."),
}


def compare_decoders(settings: dict[str, Any]) -> int:
    """Judges runs; writes the table, the figure and the page.

    Raises:
        ConfigError: A flag breaks its rule, or there are no such runs.
    """
    check_folder("output", settings["output"])
    # Imported here: bad flags must be answered without pandas.
    from reproduction.decoders import cells, page
    from tfcomp.tables.read import read_finished

    patterns = split_names(settings["runs"])
    results = read_finished(patterns, history=False)
    table = cells.read_table(results)
    if table.empty:
        rule = "must match finished runs without --train_all"
        raise ConfigError("runs", rule, settings["runs"])

    rows = cells.judge_splits(table)
    families = cells.average_families(rows)
    folder = Path(settings["output"])
    output = make_folder(folder)
    table = rows.drop(columns="values")
    text = table.to_csv(
        index=False,
        float_format="%.6g",
        lineterminator="\n",
    )
    text_page = page.render_page(rows, families)
    picture = page.plot_families(families)
    page_file = output / "decoders.md"
    write_text(output / "decoders.csv", text)
    write_text(page_file, text_page)
    write_bytes(output / "decoders.png", picture)
    print(f"page  {page_file}")
    return 0


main = Command(__doc__, FLAGS, compare_decoders)
