"""Decoders: factors -> image, every stage reachable by name.

A builder is called as `build(config, dataset)` and returns a Keras model
from an input `factors` [n, F] to a layer named `image`, float32
[n, *image_shape]. Register your own:

    from tfcomp.models import MODELS

    @MODELS.register("my_decoder")
    def build_my_decoder(config, dataset): ...

`ENCODINGS` has the codes that a decoder may be given.
"""

from tfcomp.config.registry import Registry
from tfcomp.models import model_rules as rules
from tfcomp.models.acting_rules import check_acting, size_acting
from tfcomp.models.encodings import ENCODINGS

MODELS = Registry("model")
for _name, _builder, _check in (
    ("cnn", "plain:build_cnn", rules.check_quarter),
    ("mlp", "plain:build_mlp", None),
    ("rotation", "plain:build_rotation", rules.check_quarter),
    ("burgess", "plain:build_deconvolution", None),
    ("kim", "plain:build_deconvolution", None),
    ("low_rank", "low_rank:build_low_rank", rules.check_low_rank),
    ("hard_rendering", "low_rank:build_low_rank", rules.check_low_rank),
    ("broadcast", "by_pixel:build_broadcast", None),
    ("coordinate", "by_pixel:build_coordinate", rules.check_sinusoids),
    ("transformer", "by_pixel:build_transformer", rules.check_sinusoids),
    ("film", "by_pixel:build_film", rules.check_sinusoids),
    ("attention", "by_pixel:build_attention", rules.check_sinusoids),
):
    MODELS.register(_name, f"tfcomp.models.{_builder}", check=_check)
for _name in rules.COMPOSED:
    _builder = "tfcomp.models.composed:build_composed"
    MODELS.register(_name, _builder, check=rules.check_groups)
MODELS.register(
    "acting", "tfcomp.models.acting:build_acting", check_acting, size_acting
)
