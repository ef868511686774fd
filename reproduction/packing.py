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
    stages = numbers.groupby("run")["stage"]
    counts = stages.transform("nunique")
    counts = counts.sort_values(ascending=False, kind="stable")
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
    text = table.to_csv(index=False, lineterminator="\n")
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
    studies = find_studies(patterns)
    results = read_results(
        patterns,
        history=False,
        without=studies,
    )
    runs = results.runs
    numbers = results.numbers
    if runs.empty and not studies:
        rule = "must match finished runs or studies"
        value = ",".join(patterns)
        raise ConfigError("runs", rule, value)
    for study, rows in runs.groupby("study"):
        sweeps = set()
        for folder in rows["folder"]:
            sweeps.add(Path(folder).parent)
        if len(sweeps) > 1:
            raise RunError(f"--runs: two sweeps have the name {study}")
    print_left_out(results.notes)

    written = []
    for study, rows in runs.groupby("study"):
        names = rows["run"]
        is_own = numbers["run"].isin(names)
        own_numbers = numbers[is_own]
        path, is_new = write_pack(
            output,
            study=str(study),
            tables=(rows, own_numbers),
        )
        if is_new:
            written.append(path)
    for folder in studies:
        file = folder / SEARCHES
        content = file.read_bytes()
        target_folder = files.make_folder(output / folder.name)
        target = target_folder / SEARCHES
        files.write_bytes(target, content)
        written.append(target)
    return written
