"""Synthetic datasets: bumps, stripes, sprites and composed objects.

Gaussian bumps (section 3.1) and stripes (section 4.2, appendix E): a vertical
stripe at x is the combination (x, absent). Sprites stand in for dSprites and
3DShapes. Composed objects follow a known rule, for decoders of the same rule.
"""

import pkgutil
from typing import Any

import numpy as np
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import DataConfig, RunConfig
from tfcomp.datasets.dataset import (
    DATASETS,
    Dataset,
    Render,
    build_dataset,
)
from tfcomp.datasets.factors import Factor, FactorSpace, make_pixel_space
from tfcomp.datasets.regions import Region, parse_region
from tfcomp.datasets.splits import draw_cells

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
    low = MARGIN * data.grid_size
    high = (1 - MARGIN) * data.grid_size - 1
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
        Factor(
            "x",
            num_x,
            low,
            high,
            unit="px",
        ),
        Factor(
            "y",
            num_y,
            low,
            high,
            unit="px",
        ),
    ]
    for size in num_hues:
        factors.append(_make_angle("hue", size))
    varied = tuple(factor for factor in factors if factor.size > 1)
    if not varied:
        rule = "must have a factor with several values"
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return FactorSpace(varied)


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
        size = 0
        if part.strip().isdecimal():
            size = int(part)
        sizes.append(size)
    num_shapes = sizes[0]
    is_possible = min(sizes) >= 1 and max(sizes) <= MAX_SIZE
    is_complete = len(sizes) in (5, 6)
    if not is_possible or not is_complete or num_shapes > len(shapes):
        rule = (
            f"must be the numbers of values (1 to {MAX_SIZE}) of shape (at "
            f"most {len(shapes)}, see --sprite_shapes), scale, orientation, x, "
            "y, and hue if there is one"
        )
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return shapes[:num_shapes], sizes


@DATASETS.register("composed")
def make_composed(config: RunConfig) -> Dataset:
    """Returns a disk a and a square b at `--num_positions` places per axis."""
    data = config.data
    low = CENTER_MARGIN * (data.grid_size - 1)
    high = (1 - CENTER_MARGIN) * (data.grid_size - 1)
    factors = []
    for name in ("x_a", "y_a", "x_b", "y_b"):
        factor = Factor(
            name,
            data.num_positions,
            low=low,
            high=high,
            unit="px",
        )
        factors.append(factor)

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
