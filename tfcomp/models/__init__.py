"""Decoders: factors -> image, every stage reachable by name.

A builder is called as `build(config, dataset)` and returns a Keras model
from an input `factors` [n, F] to a layer named `image`, float32
[n, *image_shape]. Register your own:

    from tfcomp.models import MODELS

    @MODELS.register("my_decoder")
    def build_my_decoder(config, dataset): ...

`ENCODINGS` has the codes that a decoder may be given (see
`tfcomp.models.encodings`).
"""

from tfcomp.config.registry import Registry
from tfcomp.models.acting_rules import check_acting, size_acting
from tfcomp.models.encodings import ENCODINGS
from tfcomp.models.model_rules import (
    COMPOSED,
    check_cnn,
    check_groups,
    check_hard_rendering,
    check_low_rank,
    check_quarter,
    check_sinusoids,
)

MODELS = Registry("model")
MODELS.register("cnn", "tfcomp.models.plain:build_cnn", check=check_cnn)
MODELS.register("mlp", "tfcomp.models.plain:build_mlp")
MODELS.register(
    "low_rank", "tfcomp.models.low_rank:build_low_rank", check=check_low_rank
)
MODELS.register(
    "hard_rendering",
    "tfcomp.models.low_rank:build_hard_rendering",
    check=check_hard_rendering,
)
MODELS.register(
    "rotation", "tfcomp.models.plain:build_rotation", check=check_quarter
)
MODELS.register(
    "acting",
    "tfcomp.models.acting:build_acting",
    check=check_acting,
    size=size_acting,
)
for _name in ("burgess", "kim"):
    MODELS.register(_name, "tfcomp.models.plain:build_deconvolution")
MODELS.register("broadcast", "tfcomp.models.by_pixel:build_broadcast")
for _name in ("coordinate", "transformer", "film", "attention"):
    _path = f"tfcomp.models.by_pixel:build_{_name}"
    MODELS.register(_name, _path, check=check_sinusoids)
for _name in COMPOSED:
    _path = "tfcomp.models.composed:build_composed"
    MODELS.register(_name, _path, check=check_groups)
