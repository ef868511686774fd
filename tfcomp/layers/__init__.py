"""Keras layers that can be used in any model."""

from tfcomp.layers.low_rank_embedding import LowRankEmbedding
from tfcomp.layers.low_rank_embedding import compute_effective_rank

__all__ = ["LowRankEmbedding", "compute_effective_rank"]
