"""Outputs of a step, beyond what the SDK does with them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfcomp.storage.files import write_text


def place(artifact: Any, work_dir: str, name: str) -> None:
    """Moves an output to a folder that stays, if there is one.

    The SDK gives every output a new folder in every run of a pipeline. What
    is written to `<work_dir>/<name>` is found by the next run, which then
    goes on with it.
    """
    if work_dir:
        artifact.uri = os.path.join(work_dir, name)
    os.makedirs(os.path.dirname(artifact.path), exist_ok=True)


def log_metrics(metrics: Any, numbers: Mapping[str, float]) -> None:
    """Logs numbers, and writes them to the file of the artifact.

    The SDK only keeps them as metadata. Its local cache then takes the
    artifact for lost, and runs the step again.
    """
    for name, number in numbers.items():
        metrics.log_metric(name, number)
    write_text(Path(metrics.path), json.dumps(dict(numbers)) + "\n")
