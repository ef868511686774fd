"""`measures.json` in a run folder: flat, and of one version of the code.

A name has a number, null, or a list with one of these per stage (or per grid
point of a curve); besides these there are `stages`, the names of the stages,
and `version`.
"""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import tfcomp
from tfcomp.files import write_text

MEASURES_FILE = "measures.json"
# What decides the numbers, besides the model and its data.
SOURCES = (
    "measures",
    "analysis",
    "curves.py",
    "evaluation.py",
    "metrics.py",
    "stage_blocks.py",
    "study.py",
)

Measures = dict[str, Any]


@functools.cache
def compute_version() -> str:
    """Hash of the sources that decide the numbers, 16 hex digits."""
    root = Path(tfcomp.__file__).parent
    files = [root / name for name in SOURCES if name.endswith(".py")]
    for name in SOURCES:
        files += (root / name).glob("*.py")
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(root)).encode())
        digest.update(b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def read_measures(path: Path) -> Measures | None:
    """The measures of a run folder, of any version; None if there are none.

    A file that is not valid JSON counts as none: it is made again.
    """
    try:
        measures = json.loads((path / MEASURES_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return measures if isinstance(measures, dict) else None


def is_measured(path: Path) -> bool:
    """Whether a run folder has the measures of this version."""
    measures = read_measures(path)
    return measures is not None and measures.get("version") == compute_version()


def write_measures(path: Path, measures: Measures) -> None:
    """Writes the measures of a run folder, with the version."""
    content = {"version": compute_version(), **measures}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_text(path / MEASURES_FILE, text)
