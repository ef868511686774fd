"""The versions of a SavedModel in TensorFlow Serving's layout."""

from __future__ import annotations

import filecmp
from pathlib import Path

FINGERPRINT = Path("assets.extra") / "weights.sha256"


def list_versions(folder: str | Path) -> list[Path]:
    """Complete versions in a folder, oldest first."""
    folder = Path(folder)
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.name.isdigit()]
    return sorted(found, key=lambda path: int(path.name))


def read_fingerprint(version: Path) -> str:
    """Hash of architecture and weights; empty if the version has none."""
    file = version / FINGERPRINT
    return file.read_text() if file.exists() else ""


def is_copy(version: Path, model: Path) -> bool:
    """Whether a version has all files of a model, byte for byte."""
    files = [path for path in model.rglob("*") if path.is_file()]
    return bool(files) and all(
        copy.is_file() and filecmp.cmp(path, copy, shallow=False)
        for path in files
        for copy in [version / path.relative_to(model)]
    )
