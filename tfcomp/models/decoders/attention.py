"""Pixels that attend to the factors."""

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import check_sinusoids


@MODELS.register("attention", check=check_sinusoids)
def build_attention(config: RunConfig, dataset: Dataset) -> Model:
    """Every pixel asks the tokens of the factors, then decides by itself.

        t_k = T_k code_k + b_k
        h_p = PE(p) + sum_heads sum_k A_pk V t_k,  A_pk = softmax_k PE(p) K t_k
        x_p = V phi_d( ... phi_1(h_p))

    (Brady et al. 2025) with a token of `--width` numbers for each of `--groups`
    and `--depth` ReLU layers phi of as many units. The penalty

        `--interaction_weight` mean_p sum_(i<j) A_pi A_pj

    of A averaged over the heads is 0 where every pixel sees one token only.
    """
    import keras
    from keras import layers

    from tfcomp.models.encodings.base import make_grouped_code, stack_groups
    from tfcomp.models.pixels import CrossAttention

    model = config.model
    factors, codes = make_grouped_code(config, dataset)
    tokens = [
        layers.Dense(model.width, name=f"token_{index}")(code)
        for index, code in enumerate(codes)
    ]
    hidden = CrossAttention(
        dataset.image_shape[:2], model.interaction_weight, name="stage_1"
    )(stack_groups(tokens, "stage_0"))
    for index in range(2, model.depth + 2):
        hidden = layers.Dense(
            model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="attention")
