"""Decoders: factors -> image, every stage reachable by name.

A builder is called as `build(config, dataset)` and returns a Keras model
from an input `factors` [n, F] to a layer named `image`, float32
[n, *image_shape]. Register your own:

    from tfcomp.models import MODELS

    @MODELS.register("my_decoder")
    def build_my_decoder(config, dataset): ...

`ENCODINGS` has the codes that a decoder may be given.
"""

import tfcomp.models.decoders
from tfcomp.models.registry import ENCODINGS, MODELS
