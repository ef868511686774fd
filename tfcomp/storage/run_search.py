"""Finds finished runs by patterns, in sweeps as well."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from tfcomp.config.errors import ConfigError
from tfcomp.storage.run_folder import FLAGS_FILE
from tfcomp.storage.run_folder import METRICS_FILE


def split_patterns(text: str) -> list[str]:
    """Patterns separated by commas, as `logs/donut*,logs/depth`."""
    return [part.strip() for part in text.split(",") if part.strip()]


def find_runs(patterns: list[str]) -> list[Path]:
    """Folders of finished runs at or below what the patterns match.

    Args:
        patterns: Paths, which may contain *, ? and **.

    Returns:
        Folders with `run.flags` and `metrics.json`, each once, sorted.

    Raises:
        ConfigError: If there is no pattern or one that matches nothing.
    """
    if not patterns:
        raise ConfigError("runs", "must name run folders", "")
    found = set()
    for pattern in patterns:
        matches = glob.glob(os.path.expanduser(pattern), recursive=True)
        if not matches:
            raise ConfigError("runs", "must match a folder", pattern)
        for match in matches:
            found.update(path.resolve() for path in _walk(match))
    return sorted(found)


def _walk(top: str) -> Iterator[Path]:
    for folder, below, files in os.walk(top):
        if FLAGS_FILE in files:
            below.clear()  # nothing but checkpoints in a run
            if METRICS_FILE in files:
                yield Path(folder)
        below.sort()
