"""`measures.json` in a run folder, of one version of the code; no TensorFlow.

Names have a number, null, or a list of these; besides there are `stages` (their
names), `version`, and `start` with the same measures of the untrained network.
"""

import json
from pathlib import Path
from typing import Any

from tfcomp.storage.code_version import compute_code_version
from tfcomp.storage.files import DamagedFileError, read_json, write_text

MEASURES_FILE = "measures.json"
Measures = dict[str, Any]


def read_measures(path: Path) -> Measures | None:
    """The measures of a run folder, of any version; None if there are none, or
    the file is damaged: it is made again."""
    try:
        return read_json(path / MEASURES_FILE)
    except (OSError, DamagedFileError):
        return None


def is_measured(path: Path) -> bool:
    """Whether a run folder has the measures of this version."""
    measures = read_measures(path) or {}
    return measures.get("version") == compute_code_version()


def write_measures(path: Path, measures: Measures) -> None:
    """Writes the measures of a run folder, with the version."""
    content = {"version": compute_code_version(), **measures}
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_text(path / MEASURES_FILE, text)
