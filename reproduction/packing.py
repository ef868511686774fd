"""Packs finished runs: a file for each sweep (`tfcomp.tables.read`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.claims.evidence import SEARCHES, find_studies
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage import files
from tfcomp.tables.read import (
    KEYS,
    NULL,
    PACK_ENDING,
    print_left_out,
    read_results,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# These columns follow from the other ones.
DERIVED = ["study", "folder", "setting", "round"]


def write_pack(
    folder: Path,
    study: str,
    tables: tuple[DataFrame, DataFrame],
) -> tuple[Path, bool]:
    """Writes the runs of a study; the same runs give the same bytes.

    Args:
        folder: Of the file.
        study: Its name.
        tables: Runs and numbers, as `tfcomp.read_runs` returns them.

    Returns:
        The file, and False if it had these bytes already.
    """
    runs, numbers = tables
    # Deep networks first, whose columns have the stages of others in order.
    counts = numbers.groupby("run")["stage"].transform("nunique")
    order = counts.sort_values(ascending=False, kind="stable").index
    numbers = numbers.loc[order]

    column = numbers[KEYS[1]].str.cat(numbers[KEYS[2:]], sep="|")
    values = numbers["value"]
    texts = values.map(repr).where(values.notna(), NULL)
    wide = texts.set_axis([numbers["run"], column]).unstack(sort=False)
    runs = runs.set_index("run").drop(columns=DERIVED)
    table = runs.dropna(axis=1, how="all").join(wide).fillna("")
    text = table.sort_values("name").to_csv(index=False, lineterminator="\n")
    path = files.make_folder(folder) / f"{study}{PACK_ENDING}"
    return path, files.write_xz(path, text.encode())


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
    studies = find_studies(patterns)
    results = read_results(
        patterns,
        history=False,
        without=studies,
    )
    runs = results.runs
    if runs.empty and not studies:
        rule = "must match finished runs or studies"
        raise ConfigError("runs", rule, ",".join(patterns))
    for study, rows in runs.groupby("study"):
        if len({Path(folder).parent for folder in rows["folder"]}) > 1:
            raise RunError(f"--runs: two sweeps have the name {study}")
    print_left_out(results.notes)

    written = []
    for study, rows in runs.groupby("study"):
        is_own = results.numbers["run"].isin(rows["run"])
        tables = (rows, results.numbers[is_own])
        path, is_new = write_pack(output, str(study), tables)
        if is_new:
            written.append(path)
    for folder in studies:
        target = files.make_folder(output / folder.name) / SEARCHES
        files.write_bytes(target, (folder / SEARCHES).read_bytes())
        written.append(target)
    return written
