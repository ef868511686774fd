"""The Keras layers of tfcomp, for models of your own.

    import keras
    import tfcomp.layers

    model = keras.models.load_model("model.keras")

After the import, Keras loads models with any layer of tfcomp, its contributed
ones included. These are the layers of the paper and of its decoders:

    codes      `BumpEncoding`, `OneHotEncoding`, `PositionalEncoding`,
               `RampEncoding`, `CircleEncoding`, `FactorIndex`
    values     `LowRankEmbedding` (section 4.1 and appendix C of the paper),
               `AxisEmbedding`; penalties `EntropyRegularizer` and
               `VarianceRegularizer` (equations 9 to 11)
    pixels     `PixelSum`, `PixelDense`, `PixelTable`, `Modulate`,
               `CrossAttention`, `Composition`, `Stack`, `NarrowConvolution`

`FactorEncoding` and `ValueEmbedding` are bases for more of them.
"""

from tfcomp.models.encodings import (
    BumpEncoding,
    CircleEncoding,
    FactorEncoding,
    FactorIndex,
    OneHotEncoding,
    PositionalEncoding,
    RampEncoding,
)
from tfcomp.models.forced_rendering import (
    AxisEmbedding,
    EntropyRegularizer,
    LowRankEmbedding,
    ValueEmbedding,
    VarianceRegularizer,
)
from tfcomp.models.loading import import_layers
from tfcomp.models.pixels import (
    Composition,
    CrossAttention,
    Modulate,
    NarrowConvolution,
    PixelDense,
    PixelSum,
    PixelTable,
    Stack,
)

__all__ = [
    "AxisEmbedding",
    "BumpEncoding",
    "CircleEncoding",
    "Composition",
    "CrossAttention",
    "EntropyRegularizer",
    "FactorEncoding",
    "FactorIndex",
    "LowRankEmbedding",
    "Modulate",
    "NarrowConvolution",
    "OneHotEncoding",
    "PixelDense",
    "PixelSum",
    "PixelTable",
    "PositionalEncoding",
    "RampEncoding",
    "Stack",
    "ValueEmbedding",
    "VarianceRegularizer",
]

import_layers()
