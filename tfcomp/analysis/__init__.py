"""Analysis of trained decoders: pure functions on arrays and stage functions.

Jacobians take any function from factors to named stages, so they work on
models that tfcomp did not make; everything else takes plain arrays. These are
the functions to start with; the modules have their parts.
"""

from tfcomp.analysis.effective_rank import compute_effective_ranks
from tfcomp.analysis.geometry import (
    compute_cosine_factorization,
    compute_factorization,
    compute_log_volume,
    compute_ratio_factorization,
    summarize_geometry,
)
from tfcomp.analysis.gram import compute_cosine_gram
from tfcomp.analysis.interaction import Interaction, compute_jet_products
from tfcomp.analysis.jacobians import (
    compute_difference_jacobians,
    compute_stage_jacobians,
    compute_stage_metrics,
    evaluate_in_batches,
)
from tfcomp.analysis.kernel_regression import fit_kernels
from tfcomp.analysis.kernels import summarize_alignment
from tfcomp.analysis.manifolds import (
    compute_gap_statistics,
    compute_pca,
    compute_umap,
)
from tfcomp.analysis.probes import compute_probe_scores
from tfcomp.analysis.schmidt import summarize_schmidt
from tfcomp.analysis.scores import compute_scores
from tfcomp.analysis.similarity import make_shape, summarize_similarity
from tfcomp.analysis.superposition import (
    compute_superposition,
    summarize_superposition,
)
from tfcomp.analysis.tuning import compute_tuning, summarize_tuning
