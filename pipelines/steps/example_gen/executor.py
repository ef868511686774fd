"""example_gen: the data sets that the trials of a profile train on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pipelines.profile import Profile, make_sweeps
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.materialized import select_settings
from tfcomp.storage.code_version import hash_files


def list_datasets(profile: Profile) -> list[RunConfig]:
    """One trial for each data set that the sweeps of a profile need.

    Threshold searches decide on their data as they go, and render them.
    """
    found: dict[str, RunConfig] = {}
    for sweep in make_sweeps(profile):
        for trial in sweep.items:
            settings = select_settings(trial.config)
            key = json.dumps(settings, sort_keys=True)
            found.setdefault(key, trial.config)
    return list(found.values())


def hash_examples(folders: Sequence[Path]) -> str:
    """SHA-256 of all files of some data sets, in hex."""
    return hash_files(
        (path.relative_to(folder).as_posix(), path)
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
