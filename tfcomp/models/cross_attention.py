"""The layer in which pixels attend to the tokens of factors."""

from collections.abc import Sequence

import keras
from keras import KerasTensor, ops

from tfcomp.models import pixels
from tfcomp.models.model_rules import HEADS


@keras.saving.register_keras_serializable(package="tfcomp")
class CrossAttention(pixels.PixelLayer):
    """PE(p) plus what the pixel takes from the tokens, in `HEADS` heads.

    From [n, K, k] to [n, rows, columns, k], with a penalty of interactions. All
    maps are applied to the few tokens, not to the many pixels: the same
    products in another order.
    """

    def __init__(
        self, image_size: Sequence[int], weight: float = 0.0, **kwargs
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

    def call(self, inputs: KerasTensor) -> KerasTensor:
        table = pixels.make_sinusoids(*self.image_size, inputs.shape[-1])
        table = ops.cast(table, inputs.dtype)  # [H, W, k]
        attention = self.attend(inputs, table)  # [n, H, W, heads, K]
        if self.weight:
            self.add_loss(self.weight * measure_interaction(attention))
        values = ops.einsum("njc,hcd->njhd", inputs, self.value)
        values = ops.einsum("njhd,hcd->nhjc", values, self.output_kernel)
        return table + ops.einsum("nrshj,nhjc->nrsc", attention, values)

    def attend(self, tokens: KerasTensor, table: KerasTensor) -> KerasTensor:
        """How much each pixel attends to each token: sums over tokens are 1."""
        keys = ops.einsum("njc,hcd->njhd", tokens, self.key)
        keys = ops.einsum("njhd,hcd->nhjc", keys, self.query)
        scores = ops.einsum("rsc,nhjc->nrshj", table, keys)
        return ops.softmax(scores * (tokens.shape[-1] // HEADS) ** -0.5)

    def get_config(self) -> dict:
        return {**super().get_config(), "weight": self.weight}


def measure_interaction(attention: KerasTensor) -> KerasTensor:
    """mean_p sum_(i<j) A_pi A_pj of attention [n, H, W, heads, K]."""
    shares = ops.mean(attention, axis=-2)  # [n, H, W, K], of sum 1
    return ops.mean(1.0 - ops.sum(ops.square(shares), axis=-1)) / 2.0
