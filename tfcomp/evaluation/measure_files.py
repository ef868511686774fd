"""Measures in the `metrics.json` of a run folder; needs no TensorFlow.

The entry `measures` has a number, null, or a list of these by name; besides, it
has `stages` (their names), the `version` of the code, and `start` with the same
measures of the untrained network. Older runs have it in a file of its own.
"""

import json
from pathlib import Path
from typing import Any

from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import DamagedFileError, read_json, write_text
from tfcomp.storage.run_folder import METRICS_FILE, find_metrics, read_metrics

MEASURES = "measures"
MEASURES_FILE = "measures.json"  # of older runs
Measures = dict[str, Any]


def read_measures(path: Path) -> Measures | None:
    """Reads the measures of a run folder, of any version of the code.

    Returns None if there are none, or if the file is damaged.
    """
    if found := (find_metrics(path) or {}).get(MEASURES):
        return found
    try:
        return read_json(path / MEASURES_FILE)
    except (OSError, DamagedFileError):
        return None


def is_measured(path: Path) -> bool:
    """True if a run folder has the measures of this version of the code."""
    measures = read_measures(path) or {}
    return measures.get("version") == compute_code_version()


def write_measures(path: Path, measures: Measures) -> None:
    """Writes the measures of a run folder, with the version of the code."""
    content = {"version": compute_code_version(), **measures}
    metrics = read_metrics(path) | {MEASURES: content}
    text = json.dumps(metrics, indent=2, allow_nan=False)
    write_text(path / METRICS_FILE, f"{text}\n")
    (path / MEASURES_FILE).unlink(missing_ok=True)
