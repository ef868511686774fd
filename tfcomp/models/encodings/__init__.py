"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them. An absent factor
(NaN) is all zeros in a population code.
"""

from tfcomp.config.registry import Registry

ENCODINGS = Registry("encoding")
ENCODINGS.register("bump", "tfcomp.models.encodings.bump_encoding:make_bump")
ENCODINGS.register(
    "circle", "tfcomp.models.encodings.circle_encoding:make_circle"
)
ENCODINGS.register("ramp", "tfcomp.models.encodings.ramp_encoding:make_ramp")
ENCODINGS.register(
    "one_hot", "tfcomp.models.encodings.one_hot_encoding:make_one_hot"
)
ENCODINGS.register(
    "positional", "tfcomp.models.encodings.positional_encoding:make_positional"
)

__all__ = ["ENCODINGS"]
