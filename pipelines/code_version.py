"""The version of the code that the steps run.

The SDK's cache compares a step's own source and its inputs, and knows
nothing of the packages that it imports. So the hash of their sources is one
of the inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version
from pathlib import Path

import pipelines
import tfcomp
from tfcomp.sources import find_sources

LIBRARIES = ("tensorflow", "keras", "tensorflow-datasets", "numpy", "kfp")


def compute_code_version(plugins: Iterable[str] = ()) -> str:
    """SHA-256 of all sources and of the versions of libraries, in hex.

    Args:
        plugins: More modules that steps import.
    """
    digest = hashlib.sha256()
    for package in (tfcomp, pipelines):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            _add(digest, path.relative_to(root).as_posix(), path.read_bytes())
    for plugin in plugins:
        for path in find_sources(plugin):
            _add(digest, plugin, path.read_bytes())
    for library in LIBRARIES:
        _add(digest, library, _find_version(library).encode())
    return digest.hexdigest()


def _add(digest: hashlib._Hash, name: str, content: bytes) -> None:
    # With its length, so that no byte can move to the next part.
    digest.update(f"{name} {len(content)}\n".encode())
    digest.update(content)


def _find_version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "absent"
