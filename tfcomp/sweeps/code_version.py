"""The version of the code that decides the numbers of a run.

A trial whose code has changed is another trial. What only draws, prints or
starts runs may change freely. After an edit that is known to leave the
numbers alone, as that of a comment, the variable TFCOMP_CODE_VERSION keeps
earlier trials: it holds the version they were made with.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OVERRIDE = "TFCOMP_CODE_VERSION"

# Modules and packages of tfcomp whose sources are hashed.
DECIDING = (
    "analysis.effective_rank",
    "analysis.embeddings",
    "analysis.geometry",
    "analysis.jacobians",
    "analysis.probes",
    "analysis.rotation",
    "config",
    "datasets",
    "encodings",
    "evaluation",
    "experiment",
    "export",
    "factors",
    "keras_objects",
    "layers",
    "metrics",
    "model_versions",
    "models",
    "monitor",
    "regions",
    "regularizers",
    "renderers",
    "run_folder",
    "settings",
    "stage_blocks",
    "training",
)

# Modules and packages that a training imports as well, and that leave its
# numbers alone: they draw, print, look up names, or analyse finished runs.
# How flags are read is left out too, since the flags themselves are hashed.
BYSTANDERS = (
    "analysis.__init__",
    "analysis.border",
    "analysis.gram",
    "analysis.interpolation",
    "analysis.kernel_regression",
    "analysis.kernels",
    "analysis.manifolds",
    "analysis.schmidt",
    "analysis.superposition",
    "analysis.tuning",
    "checks",
    "curves",
    "descriptions",
    "errors",
    "figures",
    "files",
    "pictures",
    "quiet",
    "registry",
    "run_flags",
    "summaries",
    "sweeps",
    "train",
)


@functools.cache
def compute_code_version(plugins: str = "") -> str:
    """SHA-256 of the deciding sources and of plugin modules, in hex.

    The variable TFCOMP_CODE_VERSION takes its place, if it is set.

    Args:
        plugins: Comma-separated modules, as in `--plugins`; they must be
            importable.
    """
    if chosen := os.environ.get(OVERRIDE):
        return chosen
    sources = [(_relative(path), path) for path in list_sources()]
    for name in filter(None, (part.strip() for part in plugins.split(","))):
        sources += [(name, path) for path in find_sources(name)]
    return hash_files(sources)


def hash_files(files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 of names and contents of files, in hex."""
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        # With its length, so that no byte can move to the next file.
        digest.update(f"{name} {path.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def list_sources() -> Iterator[Path]:
    """The files of tfcomp that decide the numbers of a run, sorted."""
    for name in DECIDING:
        path = ROOT.joinpath(*name.split("."))
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        else:
            yield path.with_suffix(".py")


def find_sources(module: str) -> list[Path]:
    """The source of a module, or all sources of a package."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    if spec.submodule_search_locations:
        return sorted(origin.parent.rglob("*.py"))
    return [origin]


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
