"""A network from code and place of a pixel to the pixel."""

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import check_sinusoids


@MODELS.register("coordinate", check=check_sinusoids)
def build_coordinate(config: RunConfig, dataset: Dataset) -> Model:
    """One fully connected network that all pixels share.

        x_p = V phi_d( ... phi_1(W code + w + PE(p)))

    of `--depth` layers phi of `--width` units with a PReLU each, as
    `spatial_aware_mlp` of the paper's published code.
    """
    import keras
    from keras import layers

    from tfcomp.models import pixels
    from tfcomp.models.encodings.base import make_code

    width = config.model.width
    factors, code = make_code(config, dataset)
    hidden = layers.Dense(width, name="projection")(code)
    for index in range(config.model.depth):
        if index:
            layer = layers.Dense(width, name=f"dense_{index}")
        else:
            size = dataset.image_shape[:2]
            layer = pixels.PixelDense(size, width, "sinusoids", name="dense_0")
        hidden = layers.PReLU(
            alpha_initializer=keras.initializers.Constant(0.25),
            shared_axes=[1, 2, 3],
            name=f"stage_{index}",
        )(layer(hidden))
    draw = layers.Dense(dataset.image_shape[2], dtype="float32", name="image")
    return keras.Model(factors, draw(hidden), name="coordinate")
