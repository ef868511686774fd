"""Hashes of source files: has the code changed that made something?"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent


def hash_files(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 of names and contents of files, in hex."""
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        # With its length, so that no byte can move to the next file.
        digest.update(f"{name} {path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def list_sources(parts: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Files of tfcomp and their names, for `hash_files`.

    Args:
        parts: Modules and packages, as `analysis.geometry` or `datasets`.
    """
    for part in parts:
        path = ROOT.joinpath(*part.split("."))
        files = [path.with_suffix(".py")]
        if path.is_dir():
            files = sorted(path.rglob("*.py"))
        for file in files:
            yield file.relative_to(ROOT).as_posix(), file


def list_plugin_sources(plugins: str) -> Iterator[tuple[str, Path]]:
    """Files of modules as `--plugins` names them, for `hash_files`."""
    for name in filter(None, (part.strip() for part in plugins.split(","))):
        for path in find_sources(name):
            yield name, path


def find_sources(module: str) -> list[Path]:
    """The source of a module, or all sources of a package."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    if spec.submodule_search_locations:
        return sorted(origin.parent.rglob("*.py"))
    return [origin]
