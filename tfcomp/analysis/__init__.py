"""Analysis of trained decoders: pure functions on arrays and stage functions.

Jacobians take any function from factors to named stages, so they work on
models that tfcomp did not make; geometry and probes take plain arrays.
"""

from tfcomp.analysis.geometry import compute_cosine_factorization
from tfcomp.analysis.geometry import compute_factorization
from tfcomp.analysis.geometry import compute_log_volume
from tfcomp.analysis.geometry import compute_ratio_factorization
from tfcomp.analysis.geometry import is_dead
from tfcomp.analysis.geometry import summarize_geometry
from tfcomp.analysis.jacobians import compute_difference_jacobians
from tfcomp.analysis.jacobians import compute_stage_jacobians
from tfcomp.analysis.jacobians import compute_stage_metrics
from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.probes import compute_probe_scores

__all__ = [
    "compute_cosine_factorization",
    "compute_difference_jacobians",
    "compute_factorization",
    "compute_log_volume",
    "compute_probe_scores",
    "compute_ratio_factorization",
    "compute_stage_jacobians",
    "compute_stage_metrics",
    "evaluate_in_batches",
    "is_dead",
    "summarize_geometry",
]
