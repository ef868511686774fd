"""Where a step writes."""

from __future__ import annotations

import os
from typing import Any


def place(artifact: Any, work_dir: str, name: str) -> None:
    """Moves an output to a folder that stays, if there is one.

    The SDK gives every output a new folder in every run of a pipeline. What
    is written to `<work_dir>/<name>` is found by the next run, which then
    goes on with it.
    """
    if work_dir:
        artifact.uri = os.path.join(work_dir, name)
    os.makedirs(os.path.dirname(artifact.path), exist_ok=True)
