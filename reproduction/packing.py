"""Packs finished runs, so that their claims are judged without them.

    python -m reproduction.packing --runs='tensorboard_logs/*' --output=packed

makes one file of every sweep, with flags, scores and versions of its finished
runs, and without weights. It gives the same verdicts as the runs, in seconds
and without TensorFlow; `tfcomp.read_runs` reads it, too. Tables of threshold
searches are copied.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import split_names
from tfcomp.storage import files

if TYPE_CHECKING:
    from pandas import DataFrame

FLAGS = {
    "runs": (
        "",
        "Sweeps and studies, or folders of them; patterns with *.",
    ),
    "output": (
        "packed",
        "The folder for the packed files.",
    ),
}
# These columns follow from the other ones.
DERIVED = [
    "study",
    "folder",
    "setting",
    "round",
]


def write_pack(
    folder: Path,
    study: str,
    runs: DataFrame,
    numbers: DataFrame,
) -> tuple[Path, bool]:
    """Writes the runs of a study; the same runs give the same bytes.

    Args:
        folder: Of the file.
        study: Its name.
        runs: Its runs, as `tfcomp.read_runs` returns them.
        numbers: Their numbers.

    Returns:
        The file, and False if it had these bytes already.
    """
    from tfcomp.tables.read import KEYS, NULL, PACK_ENDING

    # Deep networks first, whose columns have the stages of others in order.
    stages = numbers.groupby("run")["stage"]
    counts = stages.transform("nunique")
    counts = counts.sort_values(
        ascending=False,
        kind="stable",
    )
    numbers = numbers.loc[counts.index]

    first_key, *other_keys = KEYS[1:]
    others = numbers[other_keys]
    column = numbers[first_key].str.cat(others, sep="|")
    values = numbers["value"]
    is_number = values.notna()
    texts = values.map(repr).where(is_number, NULL)
    names = numbers["run"]
    texts = texts.set_axis([names, column])
    wide = texts.unstack(sort=False)

    runs = runs.set_index("run")
    runs = runs.drop(columns=DERIVED)
    runs = runs.dropna(axis=1, how="all")
    table = runs.join(wide)
    table = table.fillna("").sort_values("name")
    text = table.to_csv(
        index=False,
        lineterminator="\n",
    )
    path = files.make_folder(folder) / f"{study}{PACK_ENDING}"
    is_new = files.write_xz(path, text.encode())
    return path, is_new


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Packs runs, without weights, and tables of threshold studies.

    Args:
        patterns: Folders that contain runs, at any depth.
        output: The folder for the files.

    Returns:
        The packs that are new, and all tables of studies.

    Raises:
        ConfigError: If there is nothing to pack.
        RunError: If two sweeps have one name.
    """
    from reproduction.claims.evidence import SEARCHES, find_studies
    from tfcomp.tables.read import print_left_out, read_results

    results = read_results(patterns, history=False)
    studies = find_studies(patterns)
    if results.runs.empty and not studies:
        rule = "must match finished runs or studies"
        raise ConfigError("runs", rule, ",".join(patterns))
    sweeps = results.runs.groupby("study")
    for study, rows in sweeps:
        folders = rows["folder"]
        parents = folders.map(os.path.dirname)
        if parents.nunique() > 1:
            raise RunError(f"--runs: two sweeps have the name {study}")
    print_left_out(results.notes)

    written = []
    for study, rows in sweeps:
        names = rows["run"]
        is_own = results.numbers["run"].isin(names)
        numbers = results.numbers[is_own]
        path, is_new = write_pack(
            output,
            study=str(study),
            runs=rows,
            numbers=numbers,
        )
        if is_new:
            written.append(path)
    for folder in studies:
        file = folder / SEARCHES
        content = file.read_bytes()
        target = files.make_folder(output / folder.name)
        path = target / SEARCHES
        files.write_bytes(path, content)
        written.append(path)
    return written


def pack_runs(settings: dict[str, Any]) -> int:
    """Packs runs, and prints the sizes of the files."""
    folder = settings["output"]
    files.check_folder("output", folder)
    output = Path(folder)
    patterns = split_names(settings["runs"])
    paths = pack_evidence(patterns, output)
    for path in paths:
        kilobytes = path.stat().st_size / 1e3
        print(f"{kilobytes:8.0f} kB  {path}")
    return 0


main = Command(__doc__, FLAGS, pack_runs)

if __name__ == "__main__":
    exit_on_user_error(main)
