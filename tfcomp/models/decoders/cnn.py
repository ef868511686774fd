"""The published CNN."""

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import check_quarter


def cost_cnn(config: RunConfig) -> int:
    """Returns the multiplications of a hidden layer of the whole image."""
    return 9 * config.model.width**2 * config.data.grid_size**2


def check_cnn(config: RunConfig, dataset: Dataset) -> None:
    """Checks that two doublings reach the image."""
    check_quarter(config, dataset)
    if config.model.depth < 2:
        rule = "must be at least 2 for the model cnn to reach the grid"
        raise ConfigError("depth", rule, config.model.depth)


@MODELS.register("cnn", check=check_cnn, cost=cost_cnn)
def build_cnn(config: RunConfig, dataset: Dataset) -> Model:
    """The published CNN (section 3.1 of the paper).

    One transposed convolution draws the code on a quarter of the rows and
    columns of the image, two of stride 2 double that, the rest of `--depth`
    keeps the size; each has `--width` channels and a ReLU. A last one, linear,
    makes the image: depth + 2 in all.
    """
    import keras
    from keras import layers

    from tfcomp.models.encodings.base import make_code

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)
    units = layers.Reshape((1, 1, code.shape[-1]))(code)
    hidden = layers.Conv2DTranspose(
        width, (rows // 4, columns // 4), activation="relu", name="stage_0"
    )(units)
    for index in range(1, config.model.depth + 1):
        shape = (4, 2) if index <= 2 else (3, 1)  # kernel and stride
        hidden = layers.Conv2DTranspose(
            width, *shape, "same", activation="relu", name=f"stage_{index}"
        )(hidden)
    image = layers.Conv2DTranspose(
        channels, 3, padding="same", dtype="float32", name="image"
    )(hidden)
    return keras.Model(factors, image, name="cnn")
