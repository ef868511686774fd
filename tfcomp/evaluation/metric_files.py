"""Reads and writes the entry `measures` of `metrics.json`.

It has a number, null, or a list of these by name; besides, it has `stages`
(their names), the `version` of the code, and `start` with the same metrics of
the untrained network. Imports no TensorFlow.
"""

import json
from pathlib import Path
from typing import Any

from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import write_text
from tfcomp.storage.run_folder import METRICS_FILE, find_metrics, read_metrics

ENTRY = "measures"
RunMetrics = dict[str, Any]


def is_measured(path: Path) -> bool:
    """Returns True if a run has the metrics of this version of the code."""
    entry = (find_metrics(path) or {}).get(ENTRY, {})
    return entry.get("version") == compute_code_version()


def write_run_metrics(path: Path, metrics: RunMetrics) -> None:
    """Writes metrics into a run folder, with the version of the code."""
    entry = {"version": compute_code_version(), **metrics}
    content = read_metrics(path) | {ENTRY: entry}
    text = json.dumps(content, indent=2, allow_nan=False)
    write_text(path / METRICS_FILE, f"{text}\n")
