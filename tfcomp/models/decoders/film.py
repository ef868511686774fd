"""Convolutions that the code modulates."""

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import check_sinusoids


@MODELS.register("film", check=check_sinusoids)
def build_film(config: RunConfig, dataset: Dataset) -> Model:
    """Convolutions of the pixels' places, which the code modulates.

        h_0 = PE(p),  h_l = relu((1 + gamma_l) C_l h_(l-1) + beta_l),  x = V h_d
        (gamma_l, beta_l) = G_l code + g_l

    (Perez et al. 2018) with `--depth` 3 x 3 convolutions C of `--width`
    channels. The first of them is the same for all images and computed once
    for a batch.
    """
    import keras
    from keras import layers

    from tfcomp.models.encodings.base import make_code
    from tfcomp.models.pixels import Modulate, PixelTable

    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = PixelTable(dataset.image_shape[:2], width, name="places")(code)
    for index in range(config.model.depth):
        hidden = layers.Conv2D(
            width, 3, padding="same", name=f"convolution_{index}"
        )(hidden)
        modulation = layers.Dense(2 * width, name=f"film_{index}")(code)
        hidden = Modulate(name=f"stage_{index}")([hidden, modulation])
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="film")
