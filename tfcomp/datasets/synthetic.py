"""Datasets drawn by code: bumps, stripes, sprites, composed objects, digits.

Gaussian bumps (section 3.1) and stripes (section 4.2, appendix E): a vertical
stripe at x is the combination (x, absent). Sprites stand in for dSprites and
3DShapes. Composed objects follow a known rule, for decoders of the same rule.

Rotated digits (appendix F.2): one image, every angle but a gap. With several
digits, the digit is a second, categorical factor, so that angles can be held
out for one of them only. Stand-ins, for tests and a first try, are not MNIST
but strokes of a seven-segment display.
"""

import dataclasses
import functools
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError, RunError, first_line
from tfcomp.config.hashes import find_data_dir
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.dataset import (
    DATASETS,
    Dataset,
    Render,
    build_dataset,
)
from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_categories,
    make_pixel_space,
)
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import draw_cells, draw_training_table

# The last three look different at every angle.
SHAPES = (
    "square",
    "ellipse",
    "heart",
    "triangle",
    "l",
)
MARGIN = 0.18  # of the side: a sprite of scale 1 stays inside, also turned
MAX_SIZE = 1000
CENTER_MARGIN = 0.25  # of centers, in image sides: objects stay inside
DIGIT_SIZE = 28
STAND_IN_NOTE = (
    "stand-in digits: drawn strokes, not MNIST; results do not compare with "
    "the paper's (--digit_source=mnist does)"
)
# Ends of the segments (row, column), and which of them each digit lights.
_TOP = 6.0
_MIDDLE = 13.5
_BOTTOM = 21.0
_LEFT = 9.5
_RIGHT = 17.5
_SEGMENTS = {
    "a": ((_TOP, _LEFT), (_TOP, _RIGHT)),
    "b": ((_TOP, _RIGHT), (_MIDDLE, _RIGHT)),
    "c": ((_MIDDLE, _RIGHT), (_BOTTOM, _RIGHT)),
    "d": ((_BOTTOM, _LEFT), (_BOTTOM, _RIGHT)),
    "e": ((_MIDDLE, _LEFT), (_BOTTOM, _LEFT)),
    "f": ((_TOP, _LEFT), (_MIDDLE, _LEFT)),
    "g": ((_MIDDLE, _LEFT), (_MIDDLE, _RIGHT)),
}
_LIT = "abcdef bc abdeg abcdg bcfg acdfg acdefg abc abcdefg abcdfg".split()
_HALF_WIDTH = 1.2  # px, of a stroke


@DATASETS.register("gaussian_bumps")
def make_bumps(config: RunConfig) -> Dataset:
    """Returns bumps at ID positions, on the grid or continuous."""
    if config.data.num_bumps:
        rule = "must be 0 for the dataset gaussian_bumps (see --num_train)"
        raise ConfigError("num_bumps", rule, config.data.num_bumps)
    return _build(
        config,
        make_pixel_space(config.data.grid_size),
        about="A Gaussian bump at a position, drawn by code",
    )


@DATASETS.register("stripes")
def make_stripes(config: RunConfig) -> Dataset:
    """Returns all stripes, and `num_bumps` bumps at different ID cells."""
    data = config.data
    space = make_pixel_space(data.grid_size)
    region = parse_region(data.region, space)
    notes: tuple[str, ...] = ()
    if data.num_train or data.coordinates != "grid":
        notes = (
            "ignored: --num_train and --coordinates, the dataset stripes has "
            "all stripes, and --num_bumps bumps on the grid",
        )
    return _build(
        config,
        space,
        region=region,
        train=_list_stripes(config, space, region),
        other_truths={
            "plus": _make_renderer(
                "render_plus",
                data.grid_size,
                data.sigma,
                data.polarity,
            )
        },
        notes=notes,
        about="Gaussian stripes for training, a bump for every combination, "
        "drawn by code",
    )


def _list_stripes(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
) -> Array:
    """Lists all stripes, then bumps, outside of the region, [n, F]."""
    data = config.data
    if data.train_all:
        region = parse_region("none", space)
    # A row per value of each factor, the others absent (NaN).
    values = np.concatenate([factor.values() for factor in space])
    diagonal = np.eye(len(space), dtype=bool)
    is_present = np.repeat(diagonal, space.shape, axis=0)
    absent = np.float32(np.nan)
    stripes = np.where(is_present, values[:, None], absent)
    # A cross or a gap holds back stripes, too.
    is_held_out = region.contains(stripes)
    stripes = stripes[~is_held_out]

    cells = space.grid()
    is_held_out = region.contains(cells)
    cells = cells[~is_held_out]
    rng = np.random.default_rng([config.training.seed, 0])
    bumps = draw_cells(
        cells,
        data.num_bumps,
        "num_bumps",
        rng,
    )
    return np.concatenate([stripes, bumps])


def _build(config: RunConfig, space: FactorSpace, **fields: Any) -> Dataset:
    """Builds a dataset; by default its images are Gaussian bumps."""
    data = config.data
    size = data.grid_size
    defaults: dict[str, Any] = {
        "render": _make_renderer(
            "render_gaussians",
            size,
            data.sigma,
            data.polarity,
        ),
        "polarity": data.polarity,
        "image_shape": (size, size, 1),
        "has_background": True,
        "is_continuous": True,
        "sigma": data.sigma,
        "size_flag": "grid_size",
        "license": "mit",
    }
    return build_dataset(config, space, **defaults | fields)


def _make_renderer(name: str, *settings: Any) -> Render:
    """Makes a renderer that imports TensorFlow when it first draws."""
    path = f"tfcomp.datasets.renderers:{name}"

    def render(factors: Any) -> Any:
        draw = pkgutil.resolve_name(path)
        return draw(factors, *settings)

    return render


@DATASETS.register("sprites")
def make_sprites(config: RunConfig) -> Dataset:
    """Returns sprites outside the region."""
    data = config.data
    size = data.grid_size
    shapes, sizes = _parse_sprites(data)
    space = _make_space(data, sizes, shapes)
    has_hue = len(sizes) == 6
    draw = _make_renderer("render_sprites", size, shapes)
    # Values of factors that do not vary.
    middle = (size - 1) / 2
    fixed = {
        "shape": 0.0,
        "scale": 1.0,
        "orientation": 0.0,
        "x": middle,
        "y": middle,
    }
    if has_hue:
        fixed["hue"] = 0.0

    def render(factors: Any) -> Any:
        values = dict(fixed)
        for column, name in enumerate(space.names):
            values[name] = factors[:, column]
        return draw(values)

    num_channels = 1
    if has_hue:
        num_channels = 3
    return _build(
        config,
        space,
        render=render,
        image_shape=(size, size, num_channels),
        polarity="bright",
        has_background=not has_hue,
        has_position=False,
        about="A shape of some size, turned and moved, drawn by code",
    )


def _make_space(
    data: DataConfig,
    sizes: list[int],
    shapes: tuple[str, ...],
) -> FactorSpace:
    num_shapes, num_scales, num_angles, num_x, num_y, *num_hues = sizes
    factors = [
        Factor(
            "shape",
            num_shapes,
            low=0.0,
            high=max(num_shapes - 1.0, 1.0),
            categorical=True,
            names=shapes,
        ),
        Factor(
            "scale",
            num_scales,
            low=0.5,
            high=1.0,
        ),
        _make_angle("orientation", num_angles),
        _make_place("x", num_x, data.grid_size),
        _make_place("y", num_y, data.grid_size),
    ]
    for size in num_hues:
        factors.append(_make_angle("hue", size))
    varied = tuple(factor for factor in factors if factor.size > 1)
    if not varied:
        rule = "must have a factor with several values"
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return FactorSpace(varied)


def _make_place(name: str, size: int, grid_size: int) -> Factor:
    return Factor(
        name,
        size,
        low=MARGIN * grid_size,
        high=(1 - MARGIN) * grid_size - 1,
        unit="px",
    )


def _make_angle(name: str, size: int) -> Factor:
    return Factor(
        name,
        size,
        low=0.0,
        high=360.0,
        unit="degrees",
        periodic=True,
    )


def _parse_sprites(data: DataConfig) -> tuple[tuple[str, ...], list[int]]:
    """Returns shapes, and sizes of shape, scale, orientation, x, y (, hue)."""
    names = data.sprite_shapes.split(",")
    shapes = tuple(name.strip() for name in names)
    distinct = set(shapes)
    if not distinct <= set(SHAPES) or len(distinct) < len(shapes):
        rule = f"must name different ones of {', '.join(SHAPES)}"
        raise ConfigError("sprite_shapes", rule, data.sprite_shapes)

    sizes = []
    for part in data.sprite_sizes.split(","):
        if part.strip().isdecimal() and 1 <= int(part) <= MAX_SIZE:
            sizes.append(int(part))
    num_parts = data.sprite_sizes.count(",") + 1
    is_complete = len(sizes) == num_parts and num_parts in (5, 6)
    if not is_complete or sizes[0] > len(shapes):
        rule = (
            f"must be the numbers of values (1 to {MAX_SIZE}) of shape (at "
            f"most {len(shapes)}, see --sprite_shapes), scale, orientation, x, "
            "y, and hue if there is one"
        )
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return shapes[: sizes[0]], sizes


@DATASETS.register("composed")
def make_composed(config: RunConfig) -> Dataset:
    """Returns a disk a and a square b at `--num_positions` places per axis."""
    data = config.data
    low = CENTER_MARGIN * (data.grid_size - 1)
    high = (1 - CENTER_MARGIN) * (data.grid_size - 1)
    x_a = Factor("x_a", data.num_positions, low, high, unit="px")
    factors = [x_a]
    for name in ("y_a", "x_b", "y_b"):
        factors.append(dataclasses.replace(x_a, name=name))

    polarity = "bright"
    if data.composition == "product":
        polarity = "dark"
    return _build(
        config,
        FactorSpace(tuple(factors)),
        render=_make_renderer(
            "render_composed",
            data.grid_size,
            data.composition,
        ),
        polarity=polarity,
        has_position=False,
        about="A disk and a square, put together by a known rule, drawn by "
        "code",
        size_flag="num_positions",
    )


@DATASETS.register("rotated_digits")
def make_digits(config: RunConfig) -> Dataset:
    """Rotated digits outside the region."""
    data = config.data
    if data.grid_size != DIGIT_SIZE:
        rule = f"must be {DIGIT_SIZE} for the dataset rotated_digits"
        raise ConfigError("grid_size", rule, data.grid_size)
    is_stand_in = data.digit_source == "stand_in"
    if is_stand_in and data.digit_index:
        rule = "must be 0, a stand-in digit has one example"
        raise ConfigError("digit_index", rule, data.digit_index)

    classes = _parse_classes(data)
    load = functools.partial(_load_digits, data, classes)
    space = _make_digit_space(data.num_angles, classes)
    region = parse_region(data.region, space)
    notes: tuple[str, ...] = ()
    about = "Training images of MNIST (LeCun and Cortes), turned by code"
    license = "cc-by-sa-3.0"
    if is_stand_in:
        notes = (STAND_IN_NOTE,)
        about = "Digits, drawn by code, turned about their middle"
        license = "mit"
    return build_dataset(
        config,
        space,
        region=region,
        train=_draw_train(config, space, region),
        render=_make_rotation(load, space),
        image_shape=(DIGIT_SIZE, DIGIT_SIZE, 1),
        has_background=True,
        is_continuous=True,
        size_flag="num_angles",
        first_row="top",
        prepare=load,
        notes=notes,
        about=about,
        license=license,
    )


def _load_digits(
    data: DataConfig,
    classes: list[int],
) -> Array:
    """Loads or draws the image of each class, [n, 28, 28]."""
    if data.digit_source == "stand_in":
        return np.stack([draw_stand_in(digit) for digit in classes])

    folder = find_data_dir(data.data_dir)
    images = [load_digit(folder, digit, data.digit_index) for digit in classes]
    return np.stack(images)


def _make_digit_space(
    num_angles: int,
    classes: list[int],
) -> FactorSpace:
    angle = Factor(
        "angle",
        # The published angles are `num_angles` from 0 to 360 degrees
        # inclusive; the last is the first again.
        size=num_angles - 1,
        low=0.0,
        high=360.0,
        unit="degrees",
        periodic=True,
    )
    if len(classes) == 1:
        return FactorSpace((angle,))
    digit = make_categories("digit", classes)
    return FactorSpace((digit, angle))


def _draw_train(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
) -> Array:
    train = draw_training_table(config, space, region)
    if config.data.num_train or config.data.coordinates != "grid":
        return train
    # All of ID has the upright image twice, at 0 and at 360 degrees, as
    # published: 888 images of 1000 angles without 160 to 200 degrees.
    angles = train[:, -1]
    upright = train[angles == 0.0]
    return np.concatenate([train, upright])


def _parse_classes(data: DataConfig) -> list[int]:
    if not data.digit_classes:
        return [data.digit_class]

    parts = data.digit_classes.split(",")
    digits = {part.strip() for part in parts}
    are_digits = digits <= set("0123456789")
    fewest = max(len(parts), 2)
    if not are_digits or len(digits) < fewest:
        rule = "must be at least two different digits, as 0,1,4"
        raise ConfigError("digit_classes", rule, data.digit_classes)
    return sorted(map(int, digits))


def _make_rotation(
    load: Callable[[], Any],
    space: FactorSpace,
) -> Render:
    def render(factors: Any) -> Any:
        """Renders digits [n, H, W, 1], turned by their angles."""
        # Imported here: a bad flag must be answered without TensorFlow.
        import tensorflow as tf

        from tfcomp.datasets.renderers import rotate_images

        with tf.init_scope():  # files are not read inside of a graph
            digits = load()
        count = tf.shape(factors)[:1]
        rows = tf.zeros(count, tf.int32)
        if len(space) > 1:
            levels = space["digit"].values()
            distance = tf.abs(factors[:, :1] - levels)
            rows = tf.argmin(
                distance,
                axis=1,
                output_type=tf.int32,
            )
        images = tf.gather(tf.constant(digits), rows)
        return rotate_images(images, factors[:, -1])

    return render


def draw_stand_in(digit: int) -> Array:
    """Draws a digit, float32 [28, 28] in [0, 1], row 0 at the top."""
    shape = (DIGIT_SIZE, DIGIT_SIZE)
    rows, columns = np.indices(shape)
    distance = np.full(shape, np.inf)
    for name in _LIT[digit]:
        start, end = _SEGMENTS[name]
        top, left = start
        bottom, right = end
        below = rows - np.clip(rows, top, bottom)
        beside = columns - np.clip(columns, left, right)
        from_segment = np.hypot(below, beside)
        distance = np.minimum(distance, from_segment)

    share = _HALF_WIDTH + 0.5 - distance
    pixels = np.clip(share, 0.0, 1.0)
    return pixels.astype(np.float32)


@functools.lru_cache(maxsize=32)
def load_digit(
    folder: Path,
    digit: int,
    index: int,
) -> Array:
    """Loads a training image of MNIST, float32 [28, 28] in [0, 1].

    Args:
        folder: The data folder of TensorFlow Datasets.
        digit: The class.
        index: The number of the image within its class.

    Raises:
        ConfigError: If the class has fewer images.
        RunError: If MNIST is absent or damaged.
    """
    # Checked first, without the time that importing TFDS takes.
    if not [*folder.glob("mnist/*/dataset_info.json")]:
        raise RunError(
            f"--data_dir: no MNIST in {folder}; get it with python -c "
            "\"import tensorflow_datasets as t; t.load('mnist', "
            f"data_dir='{folder}')\", or try --digit_source=stand_in"
        )
    try:
        image = _find_image(folder, digit, index)
    except Exception as error:  # whatever a damaged file leads to
        raise RunError(
            f"--data_dir: MNIST in {folder} cannot be read "
            f"({first_line(error)}); remove {folder / 'mnist'} and get it again"
        ) from error
    if image is None:
        rule = f"must be less than the number of training examples of {digit}"
        raise ConfigError("digit_index", rule, index)
    return image


def _find_image(
    folder: Path,
    digit: int,
    index: int,
) -> Array | None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    examples = tfds.load(
        "mnist",
        split="train",
        data_dir=folder,
        download=False,
        shuffle_files=False,
        decoders={"image": tfds.decode.SkipDecoding()},
        # Small data sets are cached, which warns where reading stops early.
        read_config=tfds.ReadConfig(try_autocache=False),
    )
    same = examples.filter(lambda example: example["label"] == digit)
    first = same.skip(index).take(1)
    for example in first:
        image = tf.io.decode_image(example["image"], channels=1)
        pixels = np.asarray(image)
        pixels = pixels.reshape(DIGIT_SIZE, DIGIT_SIZE)
        return pixels.astype(np.float32) / 255.0
    return None
