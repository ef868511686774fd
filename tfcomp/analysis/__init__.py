"""Analysis of trained decoders: pure functions on arrays and stage functions.

Jacobians take any function from factors to named stages, so they work on
models that tfcomp did not make; everything else takes plain arrays.
"""

from tfcomp.analysis.border import compute_border_distance
from tfcomp.analysis.border import correlate_with_distance
from tfcomp.analysis.effective_rank import compute_effective_ranks
from tfcomp.analysis.features import rotate_features
from tfcomp.analysis.geometry import compute_cosine_factorization
from tfcomp.analysis.geometry import compute_factorization
from tfcomp.analysis.geometry import compute_log_volume
from tfcomp.analysis.geometry import compute_ratio_factorization
from tfcomp.analysis.geometry import is_dead
from tfcomp.analysis.geometry import summarize_geometry
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.gram import compute_distance_gram
from tfcomp.analysis.gram import compute_overlap_gram
from tfcomp.analysis.gram import convert_to_similarity
from tfcomp.analysis.jacobians import compute_difference_jacobians
from tfcomp.analysis.jacobians import compute_stage_jacobians
from tfcomp.analysis.jacobians import compute_stage_metrics
from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.analysis.kernel_regression import KernelFit
from tfcomp.analysis.kernel_regression import fit_kernels
from tfcomp.analysis.kernels import compute_alignment
from tfcomp.analysis.kernels import make_conjunctive_kernel
from tfcomp.analysis.kernels import make_constant_kernel
from tfcomp.analysis.kernels import make_factorized_kernel
from tfcomp.analysis.kernels import summarize_alignment
from tfcomp.analysis.manifolds import compute_gap_statistics
from tfcomp.analysis.manifolds import compute_pca
from tfcomp.analysis.manifolds import compute_umap
from tfcomp.analysis.probes import compute_probe_scores
from tfcomp.analysis.schmidt import compute_explained_fraction
from tfcomp.analysis.schmidt import compute_schmidt_values
from tfcomp.analysis.schmidt import summarize_schmidt
from tfcomp.analysis.superposition import compute_superposition
from tfcomp.analysis.superposition import summarize_superposition
from tfcomp.analysis.tuning import compute_marginals
from tfcomp.analysis.tuning import compute_tuning
from tfcomp.analysis.tuning import compute_unit_maps
from tfcomp.analysis.tuning import select_units
from tfcomp.analysis.tuning import summarize_tuning

__all__ = [
    "KernelFit",
    "compute_alignment",
    "compute_border_distance",
    "compute_cosine_factorization",
    "compute_cosine_gram",
    "compute_difference_jacobians",
    "compute_distance_gram",
    "compute_effective_ranks",
    "compute_explained_fraction",
    "compute_factorization",
    "compute_gap_statistics",
    "compute_log_volume",
    "compute_marginals",
    "compute_overlap_gram",
    "compute_pca",
    "compute_probe_scores",
    "compute_ratio_factorization",
    "compute_schmidt_values",
    "compute_stage_jacobians",
    "compute_stage_metrics",
    "compute_superposition",
    "compute_tuning",
    "compute_umap",
    "compute_unit_maps",
    "convert_to_similarity",
    "correlate_with_distance",
    "evaluate_in_batches",
    "fit_kernels",
    "is_dead",
    "make_conjunctive_kernel",
    "make_constant_kernel",
    "make_factorized_kernel",
    "rotate_features",
    "select_units",
    "summarize_alignment",
    "summarize_geometry",
    "summarize_schmidt",
    "summarize_superposition",
    "summarize_tuning",
]
