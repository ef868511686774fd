"""The spatial broadcast decoder."""

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model


@MODELS.register("broadcast")
def build_broadcast(config: RunConfig, dataset: Dataset) -> Model:
    """Spatial broadcast (Watters et al. 2019), then convolutions.

        x = C_(d+1) relu C_d ... relu C_1 relu(W [code, x_p, y_p] + b)

    of 3 x 3 convolutions C_1 .. C_d (d = `--depth`) with `--width` channels.
    The product with W is the published first convolution, which pads nothing,
    as what is broadcast is constant or linear along the image.
    """
    import keras
    from keras import layers

    from tfcomp.models import pixels
    from tfcomp.models.encodings.base import make_code

    size, width = dataset.image_shape[:2], config.model.width
    factors, code = make_code(config, dataset)
    place = pixels.PixelDense(size, width, "coordinates", name="broadcast")
    hidden = layers.ReLU(name="stage_0")(place(code))
    for index in range(1, config.model.depth + 1):
        hidden = layers.Conv2D(
            width, 3, padding="same", activation="relu", name=f"stage_{index}"
        )(hidden)
    image = layers.Conv2D(
        dataset.image_shape[2], 3, padding="same", dtype="float32", name="image"
    )(hidden)
    return keras.Model(factors, image, name="broadcast")
