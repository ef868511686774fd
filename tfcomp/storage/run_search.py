"""Finds finished runs by patterns, in sweeps as well."""

import glob
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tfcomp.config.errors import ConfigError, describe_refusal
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE


def find_runs(patterns: Sequence[str]) -> list[Path]:
    """Returns folders of finished runs; prints those that cannot be read."""
    is_run = {FLAGS_FILE, METRICS_FILE}.issubset
    return find_folders(patterns, is_run, _report)


def find_folders(
    patterns: Sequence[str],
    is_wanted: Callable[[set[str]], bool],
    report: Callable[[OSError], None] | None = None,
) -> list[Path]:
    """Returns wanted folders at or below the matches of patterns, sorted.

    `is_wanted` takes the names of the files in a folder, and `report` the error
    of a folder that cannot be read. Folders below a run are skipped.
    """
    if not patterns:
        raise ConfigError("runs", "must name run folders", "")
    found = set()
    for pattern in patterns:
        matches = glob.glob(os.path.expanduser(pattern), recursive=True)
        if not matches:
            raise ConfigError("runs", "must match a folder", pattern)
        for match in matches:
            for folder, below, files in os.walk(match, onerror=report):
                if FLAGS_FILE in files:
                    below.clear()  # nothing but checkpoints in a run
                if is_wanted(set(files)):
                    found.add(Path(folder).resolve())
    return sorted(found)


def _report(error: OSError) -> None:
    # Not if it has gone since it was listed, or a pattern matches a file.
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        print(f"left out: {describe_refusal(error)}", file=sys.stderr)
