"""The version of the code that decides the numbers of a run.

A trial whose code has changed is another trial. What only draws, prints or
starts runs may change freely. After an edit that is known to leave the
numbers alone, as that of a comment, the variable TFCOMP_CODE_VERSION keeps
earlier trials: it holds the version they were made with.
"""

from __future__ import annotations

import functools
import os

from tfcomp.sources import hash_files
from tfcomp.sources import list_plugin_sources
from tfcomp.sources import list_sources

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
    "sources",
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
    return hash_files([*list_sources(DECIDING), *list_plugin_sources(plugins)])
