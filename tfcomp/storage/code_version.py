"""Hashes of the packages that decide the numbers of a run.

A trial whose code has changed is another trial. After an edit that changes no
number, as in a comment, TFCOMP_CODE_VERSION=<old version> keeps earlier trials,
measures and examples.
"""

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfcomp.config.run_config import split_names

OVERRIDE = "TFCOMP_CODE_VERSION"
# The packages that decide the numbers of a run: all that a training imports,
# except `figures`, which only draws them.
_USED = "config statistics storage datasets models metrics training contrib"
DECIDING = tuple(f"tfcomp.{name}" for name in _USED.split())


@functools.cache
def compute_code_version(plugins: str = "") -> str:
    """Returns the hash of the code that decides numbers, and of plugins."""
    chosen = os.environ.get(OVERRIDE)
    return chosen or hash_modules([*DECIDING, *split_names(plugins)])


def hash_modules(modules: Iterable[str]) -> str:
    """Returns the SHA-256 of modules and of whole packages with tables."""
    return hash_files(file for module in modules for file in _list(module))


def hash_files(files: Iterable[tuple[str, Path]]) -> str:
    """Returns the SHA-256 of names and contents of files, in hex."""
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        # With its length, so that no byte can move to the next file.
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _list(module: str) -> Iterator[tuple[str, Path]]:
    """Yields names, equal on all machines, and files of a module."""
    spec = importlib.util.find_spec(module)
    if spec is None or not (spec.origin and spec.has_location):
        return  # it has no source, as `sys`
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        yield module, origin
        return
    for path in sorted(origin.parent.rglob("*")):
        if path.suffix in (".py", ".toml"):
            yield f"{module}/{path.relative_to(origin.parent).as_posix()}", path
