"""Analysis of trained decoders: pure functions on arrays and stage functions.

Jacobians take any function from factors to named stages; everything else takes
plain arrays. These are the functions to start with, imported when they are
first used, since most of them need no TensorFlow.
"""

import importlib
from typing import Any

_WHERE = {
    "geometry": (
        "compute_cosine_factorization",
        "compute_factorization",
        "compute_log_volume",
        "compute_ratio_factorization",
        "summarize_geometry",
    ),
    "gram": ("compute_cosine_gram",),
    "interaction": ("Interaction", "compute_jet_products"),
    "jacobians": (
        "compute_difference_jacobians",
        "compute_stage_jacobians",
        "compute_stage_metrics",
        "evaluate_in_batches",
    ),
    "kernel_regression": ("fit_kernels",),
    "kernels": ("summarize_alignment",),
    "manifolds": ("compute_gap_statistics", "compute_pca", "compute_umaps"),
    "probes": ("compute_probe_scores",),
    "schmidt": ("summarize_schmidt",),
    "similarity": ("make_shape", "summarize_similarity"),
    "superposition": ("compute_superposition", "summarize_superposition"),
    "tuning": ("compute_tuning", "summarize_tuning"),
}
__all__ = sorted(name for names in _WHERE.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _WHERE.items():
        if name in names:
            found = importlib.import_module(f"{__name__}.{module}")
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
