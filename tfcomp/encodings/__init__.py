"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them. An absent factor
(NaN) is all zeros in a population code.
"""

from tfcomp.registry import Registry

ENCODINGS = Registry("encoding")
ENCODINGS.register("bump", "tfcomp.encodings.bump:make_bump")
ENCODINGS.register("circle", "tfcomp.encodings.circle:make_circle")
ENCODINGS.register("ramp", "tfcomp.encodings.ramp:make_ramp")
ENCODINGS.register("one_hot", "tfcomp.encodings.one_hot:make_one_hot")
ENCODINGS.register("positional", "tfcomp.encodings.positional:make_positional")

__all__ = ["ENCODINGS"]
