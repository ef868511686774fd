"""Imports every Keras class of tfcomp, so that saved models can be loaded.

    import keras
    import tfcomp.models.keras_objects
    model = keras.models.load_model("tensorboard_logs/donut/model.keras")

(A SavedModel needs none of this.)
"""

from tfcomp.models.encodings.bump_encoding import BumpEncoding
from tfcomp.models.encodings.circle_encoding import CircleEncoding
from tfcomp.models.encodings.factor_index import FactorIndex
from tfcomp.models.encodings.one_hot_encoding import OneHotEncoding
from tfcomp.models.encodings.positional_encoding import PositionalEncoding
from tfcomp.models.encodings.ramp_encoding import RampEncoding
from tfcomp.models.low_rank import Stack
from tfcomp.models.low_rank_embedding import LowRankEmbedding
from tfcomp.models.regularizers import EntropyRegularizer
from tfcomp.models.regularizers import VarianceRegularizer

__all__ = [
    "BumpEncoding",
    "CircleEncoding",
    "EntropyRegularizer",
    "FactorIndex",
    "LowRankEmbedding",
    "OneHotEncoding",
    "PositionalEncoding",
    "RampEncoding",
    "Stack",
    "VarianceRegularizer",
]
