"""Packs the evidence of runs for keeping: tables, and no weights.

Every sweep becomes one file (`tfcomp.tables.packs`), every threshold study
a folder of its small text files, but for flags that say where things lay on
the machine that made them. The same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import LOCATION_FLAGS
from tfcomp.storage.files import make_subfolder, write_bytes
from tfcomp.studies.claims.evidence import STUDY_FILES, find_studies
from tfcomp.tables import read_results
from tfcomp.tables.packs import write_pack


def pack_evidence(patterns: Sequence[str], output: Path) -> list[Path]:
    """Packs every sweep, study or single run below patterns.

    Trainings of a threshold study are left out: its tables are the evidence.

    Returns the files that were not there as they are. Raises ConfigError if
    there is nothing to pack, RunError if two sweeps have one name.
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
    written = []
    for study, rows in runs.groupby("study"):
        chosen = results.numbers[results.numbers["run"].isin(rows["run"])]
        path, is_new = write_pack(output, str(study), (rows, chosen))
        written += [path] * is_new
    for folder in studies:
        for file in filter(Path.exists, map(folder.joinpath, STUDY_FILES)):
            written += copy_text(file, output, folder.name)
    return written


def copy_text(source: Path, output: Path, study: str) -> list[Path]:
    """Copies a text file without flags of places; returns it if it is new."""
    target = make_subfolder(output, study) / source.name
    starts = tuple(f"--{name}=".encode() for name in LOCATION_FLAGS)
    lines = source.read_bytes().splitlines(keepends=True)
    content = b"".join(line for line in lines if not line.startswith(starts))
    if target.exists() and target.read_bytes() == content:
        return []
    write_bytes(target, content)
    return [target]
