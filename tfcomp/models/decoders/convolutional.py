"""Decoders of dense layers and convolutions."""

from __future__ import annotations

import math

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.models import registry
from tfcomp.models.registry import MODELS, keras, layers, make_code

FIRST_SIDE = 4  # pixels of the shorter side of a map that is doubled


def _check_quarter(config: RunConfig, dataset: Dataset) -> None:
    rows, columns, _ = dataset.image_shape
    has_even_rows = rows % 4 == 0
    has_even_columns = columns % 4 == 0
    if has_even_rows and has_even_columns:
        return
    if dataset.size_flag == "grid_size":
        raise registry.refuse(config, "grid_size", "must be a multiple of 4")
    rule = (
        "must fit the images: rows and columns must be multiples of 4, "
        f"these have {rows} x {columns}"
    )
    raise ConfigError("model", rule, config.model.model)


def _check_cnn(config: RunConfig, dataset: Dataset) -> None:
    _check_quarter(config, dataset)
    if config.model.depth < 2:
        raise registry.refuse(config, "depth", "must be at least 2")


@MODELS.register("mlp")
def build_mlp(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`--depth` ReLU layers of `--width` units and a linear layer of pixels.

    Every pixel has weights of its own, so nothing is shared between places:
    a floor to compare other decoders with, rather than one to use.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    shape = dataset.image_shape
    factors, hidden = make_code(config, dataset)
    for index in range(config.model.depth):
        dense = layers.Dense(
            config.model.width,
            activation="relu",
            name=f"stage_{index}",
        )
        hidden = dense(hidden)

    draw = layers.Dense(
        math.prod(shape),
        dtype="float32",
        name="pixels",
    )
    arrange = layers.Reshape(
        shape,
        dtype="float32",
        name="image",
    )
    pixels = draw(hidden)
    image = arrange(pixels)
    return keras.Model(factors, image, name="mlp")


@MODELS.register(
    "cnn",
    check=_check_cnn,
    cost=registry.count_convolution,
)
def build_cnn(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The published CNN (section 3.1 of the paper).

    One transposed convolution draws the code on a quarter of the rows and
    columns of the image, two of stride 2 double that, the rest of `--depth`
    keeps the size; each has a ReLU. A linear one makes the image. It superposes
    images of single factors where training has holes (section 3.3): take
    `low_rank` for compositions that are held out.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)

    num_units = code.shape[-1]
    arrange = layers.Reshape((1, 1, num_units))
    units = arrange(code)
    quarter = (rows // 4, columns // 4)
    first = layers.Conv2DTranspose(
        width,
        kernel_size=quarter,
        activation="relu",
        name="stage_0",
    )
    hidden = first(units)

    depth = config.model.depth
    for index in range(1, depth + 1):
        kernel_size = 3
        strides = 1
        if index <= 2:  # it doubles rows and columns
            kernel_size = 4
            strides = 2
        convolve = layers.Conv2DTranspose(
            width,
            kernel_size=kernel_size,
            strides=strides,
            padding="same",
            activation="relu",
            name=f"stage_{index}",
        )
        hidden = convolve(hidden)

    draw = layers.Conv2DTranspose(
        channels,
        kernel_size=3,
        padding="same",
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="cnn")


@MODELS.register("rotation", check=_check_quarter)
def build_rotation(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The published network of rotated digits (appendix F.2 of the paper).

    A dense layer draws the code on a quarter of the image's rows and columns;
    two transposed convolutions double that, each with batch normalization (as
    in PyTorch) and a ReLU; a convolution and a sigmoid make the image. With
    width 64 it has the 406,913 published weights.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)

    quarter = (rows // 4, columns // 4)
    shape = (*quarter, 2 * width)
    dense = layers.Dense(
        math.prod(shape),
        activation="relu",
        name="dense",
    )
    pixels = dense(code)
    arrange = layers.Reshape(shape, name="stage_0")
    hidden = arrange(pixels)

    sizes = [2 * width, width]
    for index, filters in enumerate(sizes, start=1):
        double = layers.Conv2DTranspose(
            filters,
            kernel_size=4,
            strides=2,
            padding="same",
            name=f"double_{index}",
        )
        normalize = layers.BatchNormalization(
            momentum=0.9,
            epsilon=1e-5,
            name=f"normalize_{index}",
        )
        doubled = double(hidden)
        normalized = normalize(doubled)
        activate = layers.ReLU(name=f"stage_{index}")
        hidden = activate(normalized)

    draw = layers.Conv2D(
        channels,
        kernel_size=3,
        padding="same",
        activation="sigmoid",
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="rotation")


@MODELS.register("broadcast")
def build_broadcast(config: RunConfig, dataset: Dataset) -> keras.Model:
    """Spatial broadcast (Watters et al. 2019), then convolutions.

        x = C_(d+1) relu C_d ... relu C_1 relu(W [code, x_p, y_p] + b)

    of 3 x 3 convolutions C_1 .. C_d (d = `--depth`) with `--width` channels.
    The product with W is the published first convolution, which pads nothing,
    as the code is constant and coordinates are linear along the image.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models.pixels import PixelDense

    width = config.model.width
    rows, columns, channels = dataset.image_shape
    factors, code = make_code(config, dataset)

    place = PixelDense(
        (rows, columns),
        units=width,
        positions="coordinates",
        name="broadcast",
    )
    placed = place(code)
    activate = layers.ReLU(name="stage_0")
    hidden = activate(placed)
    depth = config.model.depth
    for index in range(1, depth + 1):
        convolve = layers.Conv2D(
            width,
            kernel_size=3,
            padding="same",
            activation="relu",
            name=f"stage_{index}",
        )
        hidden = convolve(hidden)

    draw = layers.Conv2D(
        channels,
        kernel_size=3,
        padding="same",
        dtype="float32",
        name="image",
    )
    image = draw(hidden)
    return keras.Model(factors, image, name="broadcast")


@MODELS.register("burgess")
@MODELS.register("kim")
def build_deconvolution(config: RunConfig, dataset: Dataset) -> keras.Model:
    """`burgess` of beta-VAE (Burgess et al. 2018), `kim` of FactorVAE (2018).

    Dense layers of 4 w units and of a first map of 4 x 4 x c, then transposed
    convolutions (kernel 4, stride 2) of c, w/2, ..., w/2, C channels, with
    w = `--width`, 64 as published, and c = w/2 for `burgess` or w for `kim`:

        x = (T_n relu ... relu T_1) reshape(relu D_2 relu D_1 code)

    The last map is cropped to the image.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    first_size, channels = list_doublings(config, dataset)
    first_shape = (*first_size, channels[0])

    factors, hidden = make_code(config, dataset)
    first_units = 4 * config.model.width
    map_units = math.prod(first_shape)
    for index, units in enumerate([first_units, map_units]):
        dense = layers.Dense(units, activation="relu", name=f"stage_{index}")
        hidden = dense(hidden)
    arrange = layers.Reshape(first_shape)
    hidden = arrange(hidden)

    middle = channels[1:-1]
    for index, filters in enumerate(middle, start=2):
        double = layers.Conv2DTranspose(
            filters,
            kernel_size=4,
            strides=2,
            padding="same",
            activation="relu",
            name=f"stage_{index}",
        )
        hidden = double(hidden)
    draw = layers.Conv2DTranspose(
        channels[-1],
        kernel_size=4,
        strides=2,
        padding="same",
        dtype="float32",
        name="drawn",
    )
    drawn = draw(hidden)

    margins = _measure_margins(drawn, dataset)
    crop = layers.Cropping2D(
        margins,
        dtype="float32",
        name="image",
    )
    image = crop(drawn)
    return keras.Model(factors, image, name=config.model.model)


def _measure_margins(
    drawn: keras.KerasTensor,
    dataset: Dataset,
) -> list[tuple[int, int]]:
    """Measures what a map exceeds images by: before and after, by axis."""
    margins = []
    for axis in (0, 1):
        drawn_size = drawn.shape[1 + axis]
        size = dataset.image_shape[axis]
        extra = drawn_size - size
        before = extra // 2
        after = extra - before
        margins.append((before, after))
    return margins


def list_doublings(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[list[int], list[int]]:
    """Plans the maps of `build_deconvolution`, each twice as large.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.

    Returns:
        Rows and columns of the first map, and the channels of all maps.
    """
    rows, columns, channels = dataset.image_shape
    shorter = min(rows, columns)
    ratio = shorter / FIRST_SIDE
    exponent = math.log2(ratio)
    doublings = math.ceil(exponent)
    count = max(1, doublings)
    scale = 2**count
    first_rows = math.ceil(rows / scale)
    first_columns = math.ceil(columns / scale)

    width = config.model.width
    half = max(1, width // 2)
    first = width
    if config.model.model == "burgess":
        first = half
    filters = [first] * min(count, 2)
    filters += [half] * (count - 2)
    filters.append(channels)
    first_size = [first_rows, first_columns]
    return first_size, filters
