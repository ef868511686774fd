"""Cross-attention from pixels to factors, with the interaction penalty."""

import keras
from keras import ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_grouped_code, stack_groups
from tfcomp.models.model_rules import HEADS
from tfcomp.models.pixels import PixelLayer, make_sinusoids


def build_attention(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Every pixel asks the tokens of the factors, then decides by itself.

        t_k = T_k code_k + b_k
        h_p = PE(p) + sum_heads sum_k A_pk V t_k,  A_pk = softmax_k PE(p) K t_k
        x_p = V phi_d( ... phi_1(h_p))

    (Brady et al. 2025) with a token of `--width` numbers for each of `--groups`
    and `--depth` ReLU layers phi of as many units. The penalty

        `--interaction_weight` mean_p sum_(i<j) A_pi A_pj

    of A averaged over the heads is 0 where every pixel sees one token only.
    Of 28 x 28 pixels, with a bump code, width 64 and depth 4 there are 36,801
    weights.
    """
    model = config.model
    factors, codes = make_grouped_code(config, dataset)
    tokens = [
        keras.layers.Dense(model.width, name=f"token_{index}")(code)
        for index, code in enumerate(codes)
    ]
    tokens = stack_groups(tokens, "stage_0")
    hidden = CrossAttention(
        dataset.image_shape[:2], model.interaction_weight, name="stage_1"
    )(tokens)
    for index in range(2, model.depth + 2):
        hidden = keras.layers.Dense(
            model.width, activation="relu", name=f"stage_{index}"
        )(hidden)
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="attention")


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(PixelLayer):
    """PE(p) plus what the pixel takes from the tokens, in `HEADS` heads.

    The maps of queries and keys, and those of values and outputs, are applied
    to the few tokens, not to the many pixels: the same products in another
    order.

    Args:
        image_size: Rows and columns of the image.
        weight: That of the penalty of interactions.

    Input shape: [n, K, k] with k a multiple of `HEADS`.
    Output shape: [n, rows, columns, k].
    """

    def __init__(
        self, image_size: tuple[int, int], weight: float = 0.0, **kwargs
    ) -> None:
        super().__init__(image_size, **kwargs)
        self.weight = weight

    def build(self, input_shape: tuple) -> None:
        width = input_shape[-1]
        shape = (HEADS, width, width // HEADS)
        self.query, self.key, self.value, self.output_kernel = (
            self.add_weight(shape, "glorot_uniform", name=name)
            for name in ("query", "key", "value", "output")
        )

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        table = make_sinusoids(*self.image_size, inputs.shape[-1])
        table = ops.cast(table, inputs.dtype)  # [H, W, k]
        attention = self.attend(inputs, table)  # [n, H, W, heads, K]
        if self.weight:
            self.add_loss(self.weight * measure_interaction(attention))
        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        return table + ops.einsum("nrshj,nhjc->nrsc", attention, values)

    def attend(
        self, tokens: keras.KerasTensor, table: keras.KerasTensor
    ) -> keras.KerasTensor:
        """How much each pixel attends to each token: sums over tokens are 1."""
        keys = ops.einsum("njc,hcd->njhd", tokens, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        return ops.softmax(scores * (tokens.shape[-1] // HEADS) ** -0.5)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight": self.weight}


def measure_interaction(attention: keras.KerasTensor) -> keras.KerasTensor:
    """mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    shares = ops.mean(attention, axis=-2)  # [n, H, W, K], of sum 1
    return ops.mean(1.0 - ops.sum(ops.square(shares), axis=-1)) / 2.0
