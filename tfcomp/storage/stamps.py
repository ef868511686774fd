"""Stamps: is what was made from something still all there, and up to date?

A stamp is a hidden file in a folder, with the version of what was made and a
hash of each of the files.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfcomp.storage.code_version import hash_files
from tfcomp.storage.files import DamagedFileError, read_json, write_text

STAMP_FILE = ".reports"


def is_current(folder: Path, version: str) -> bool:
    """Whether a folder has what was made, of a version and as written."""
    try:
        stamp = read_json(folder / STAMP_FILE)
        return stamp == _make_stamp(folder, version, stamp["files"])
    except (OSError, DamagedFileError, LookupError, TypeError):
        return False


def write_stamp(folder: Path, version: str, made: Iterable[Path]) -> None:
    """Notes the version and the files that were made, all in the folder."""
    names = [str(path.relative_to(folder)) for path in made if path.exists()]
    stamp = _make_stamp(folder, version, names)
    write_text(folder / STAMP_FILE, json.dumps(stamp))


def _make_stamp(
    folder: Path, version: str, names: Iterable[str]
) -> dict[str, Any]:
    files = {name: hash_files([(name, folder / name)]) for name in names}
    return {"version": version, "files": files}
