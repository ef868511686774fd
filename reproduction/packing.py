"""Packs finished runs: a file for each sweep (`tfcomp.tables.read`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reproduction.claims.evidence import STUDY_FLAGS, TABLES, find_studies
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.storage import files
from tfcomp.tables.read import (
    KEYS,
    NULL,
    PACK_ENDING,
    print_left_out,
    read_pack,
    read_results,
)

if TYPE_CHECKING:
    from pandas import DataFrame


def write_pack(
    folder: Path, study: str, tables: tuple[DataFrame, DataFrame]
) -> tuple[Path, bool]:
    """Writes the runs of a study; returns its file, and False if unchanged."""
    runs, numbers = tables
    # Deep networks first, whose columns have the stages of others in order.
    counts = numbers.groupby("run")["stage"].transform("nunique")
    order = counts.sort_values(ascending=False, kind="stable").index
    numbers = numbers.loc[order]
    column = numbers[KEYS[1]].str.cat(numbers[KEYS[2:]], sep="|")
    texts = numbers["value"].map(repr).where(numbers["value"].notna(), NULL)
    wide = texts.set_axis([numbers["run"], column]).unstack(sort=False)
    # These follow from the other columns.
    derived = ["study", "folder", "setting", "round"]
    runs = runs.set_index("run").drop(columns=derived).dropna(axis=1, how="all")
    table = runs.join(wide).fillna("").sort_values("name")
    text = table.to_csv(index=False, lineterminator="\n")
    path = files.make_folder(folder) / f"{study}{PACK_ENDING}"
    return path, files.write_xz(path, text.encode())


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Packs runs, without weights, and threshold studies.

    The same runs give the same bytes. Returns new files. ConfigError for
    nothing to pack, RunError for sweeps of one name, or files with more runs.
    """
    studies = find_studies(patterns)
    results = read_results(patterns, history=False, without=studies)
    runs = results.runs
    parents = (Path(folder).parent for folder in runs["folder"])
    sweeps = set(zip(runs["study"], parents, strict=True))
    names = [*(n for n, _ in sweeps), *(folder.name for folder in studies)]
    if not names:
        rule = "must match finished runs or studies"
        raise ConfigError("runs", rule, ",".join(patterns))
    if len(set(names)) < len(names):
        raise RunError(f"--runs: two sweeps have one name in {sorted(names)}")
    for pack in (output / f"{study}{PACK_ENDING}" for study, _ in sweeps):
        packed = read_pack(pack) if pack.exists() else []
        if lost := {run.row["run"] for run in packed}.difference(runs["run"]):
            rule = f"must keep the runs of {pack}, but {len(lost)} are not"
            raise RunError(f"--pack {rule} among --runs: name another folder")
    print_left_out(results.notes)
    written = []
    for study, rows in runs.groupby("study"):
        chosen = results.numbers[results.numbers["run"].isin(rows["run"])]
        path, is_new = write_pack(output, str(study), (rows, chosen))
        written += [path] * is_new
    for folder in studies:
        paths = map(folder.joinpath, (STUDY_FLAGS, *TABLES))
        for file in filter(Path.exists, paths):
            written += copy_text(file, output, folder.name)
    return written


def copy_text(source: Path, output: Path, study: str) -> list[Path]:
    """Copies a text file without flags of places; returns it if it is new."""
    target = files.make_folder(output / study) / source.name
    starts = tuple(f"--{name}=".encode() for name in LOCATION_FLAGS)
    lines = source.read_bytes().splitlines(keepends=True)
    content = b"".join(line for line in lines if not line.startswith(starts))
    if target.exists() and target.read_bytes() == content:
        return []
    files.write_bytes(target, content)
    return [target]
