"""Encodings: Keras layers from raw factor values to the decoder's input.

They are part of the model, so that a saved model takes raw factors and a
derivative with respect to the factors passes through them. A builder is called
as `make(config, space)` and returns the layer, which is named `code`.
"""

from tfcomp.config.registry import Registry

ENCODINGS = Registry("encoding")
for _name, _class in {
    "bump": "codes:BumpEncoding",
    "one_hot": "codes:OneHotEncoding",
    "positional": "codes:PositionalEncoding",
    "circle": "codes:CircleEncoding",
    "ramp": "codes:RampEncoding",
}.items():
    ENCODINGS.register(_name, f"tfcomp.models.encodings.{_class}.of_run")
