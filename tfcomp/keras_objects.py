"""Imports every Keras class of tfcomp, so that saved models can be loaded.

    import keras
    import tfcomp.keras_objects
    model = keras.models.load_model("tensorboard_logs/donut/model.keras")

(A SavedModel needs none of this.)
"""

from tfcomp.encodings.bump import BumpEncoding
from tfcomp.encodings.circle import CircleEncoding
from tfcomp.encodings.index import FactorIndex
from tfcomp.encodings.one_hot import OneHotEncoding
from tfcomp.encodings.positional import PositionalEncoding
from tfcomp.encodings.ramp import RampEncoding
from tfcomp.layers import LowRankEmbedding
from tfcomp.models.low_rank import Stack
from tfcomp.regularizers import EntropyRegularizer
from tfcomp.regularizers import VarianceRegularizer

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
