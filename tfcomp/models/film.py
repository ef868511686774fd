"""FiLM: the code scales and shifts every channel of every layer."""

import keras
from keras import ops

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.encodings import make_code
from tfcomp.models.pixels import PixelLayer, make_sinusoids


def build_film(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Convolutions of the pixels' places, which the code modulates.

        h_0 = PE(p),  h_l = relu((1 + gamma_l) C_l h_(l-1) + beta_l),  x = V h_d
        (gamma_l, beta_l) = G_l code + g_l

    (Perez et al. 2018) with `--depth` 3 x 3 convolutions C of `--width`
    channels. The first of them is the same for all images and computed once
    for a batch. Of 28 x 28 pixels, with a bump code, width 64 and depth 4
    there are 176,961 weights.
    """
    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelTable(dataset.image_shape[:2], width, name="places")(code)
    for index in range(config.model.depth):
        hidden = keras.layers.Conv2D(
            width, 3, padding="same", name=f"convolution_{index}"
        )(hidden)
        modulation = keras.layers.Dense(2 * width, name=f"film_{index}")(code)
        hidden = Modulate(name=f"stage_{index}")([hidden, modulation])
    draw = keras.layers.Dense(
        dataset.image_shape[2], dtype="float32", name="image"
    )
    return keras.Model(factors, draw(hidden), name="film")


@keras.saving.register_keras_serializable(package="tfcomp")
class PixelTable(PixelLayer):
    """PE(p) with so many features, [1, rows, columns, units], for any input."""

    def __init__(
        self, image_size: tuple[int, int], units: int, **kwargs
    ) -> None:
        super().__init__(image_size, **kwargs)
        self.units = units

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        table = make_sinusoids(*self.image_size, self.units)
        return ops.cast(table[None], self.compute_dtype)

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="tfcomp")
class Modulate(keras.layers.Layer):
    """relu((1 + gamma) h + beta) of h [n or 1, H, W, k] and both [n, 2 k]."""

    def call(self, inputs: list) -> keras.KerasTensor:
        hidden, modulation = inputs
        scale, shift = ops.split(modulation[:, None, None], 2, axis=-1)
        return ops.relu((1.0 + scale) * hidden + shift)
