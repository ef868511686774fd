"""Sprites: a shape of some size, turned and moved, white or in a hue.

A procedural stand-in for dSprites and 3DShapes, whose files nobody can embed:
the same five factors (and hue), as many values of each as one likes. And two
objects whose composition is known, a sum, a product or an occlusion, for a
truth table of decoders: those that compose as the data do can draw pairs of
places that training never showed together.
"""

from typing import Any

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset, build_dataset
from tfcomp.datasets.factors import Factor, FactorSpace

SHAPES = ("square", "ellipse", "heart")
# A sprite of scale 1 stays inside of the image, however it is turned.
MARGIN = 0.18  # of the side
MAX_SIZE = 1000
# What a factor with one value is fixed at.
FIXED = {"shape": 0.0, "scale": 1.0, "orientation": 0.0}
# Where centers are, in image sides: the objects stay inside of the image.
CENTER_MARGIN = 0.25


def make_sprites(config: RunConfig) -> Dataset:
    """Sprites outside the region."""
    data, size = config.data, config.data.grid_size
    sizes = _parse_sizes(data)
    space = _make_space(data, sizes)

    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets.renderers import render_sprites

        values: dict[str, Any] = {**FIXED, "x": (size - 1) / 2}
        values["y"] = values["x"]
        if len(sizes) == 6:
            values["hue"] = 0.0
        for column, name in enumerate(space.names):
            values[name] = factors[:, column]
        return render_sprites(values, size)

    return build_dataset(
        config,
        space,
        render=render,
        image_shape=(size, size, 3 if len(sizes) == 6 else 1),
        polarity="bright",
        has_position=False,
        about="A shape of some size, turned and moved, drawn by code",
        license="mit",
        size_flag="grid_size",
    )


def _make_space(data: DataConfig, sizes: list[int]) -> FactorSpace:
    """The factors with more than one value, in the order of dSprites."""
    low, high = MARGIN * data.grid_size, (1 - MARGIN) * data.grid_size - 1
    names, last = SHAPES[: sizes[0]], max(sizes[0] - 1.0, 1.0)
    factors = [
        Factor("shape", sizes[0], 0.0, last, categorical=True, names=names),
        Factor("scale", sizes[1], 0.5, 1.0),
        Factor("orientation", sizes[2], 0.0, 360.0, "degrees", periodic=True),
        Factor("x", sizes[3], low, high, "px"),
        Factor("y", sizes[4], low, high, "px"),
    ]
    if len(sizes) == 6:
        factors.append(Factor("hue", sizes[5], 0.0, 360.0, "degrees", True))
    varied = tuple(factor for factor in factors if factor.size > 1)
    if not varied:
        rule = "must have a factor with several values"
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return FactorSpace(varied)


def _parse_sizes(data: DataConfig) -> list[int]:
    """How many values shape, scale, orientation, x, y (and hue) have."""
    parts = data.sprite_sizes.split(",")
    sizes = [int(part) if part.strip().isdecimal() else 0 for part in parts]
    is_possible = all(1 <= size <= MAX_SIZE for size in sizes)
    if len(sizes) not in (5, 6) or not is_possible or sizes[0] > len(SHAPES):
        rule = (
            f"must be the numbers of values (1 to {MAX_SIZE}) of shape (at "
            "most 3), scale, orientation, x, y, and hue if there is one"
        )
        raise ConfigError("sprite_sizes", rule, data.sprite_sizes)
    return sizes


def make_composed(config: RunConfig) -> Dataset:
    """A disk a and a square b at `--num_positions` places along each axis."""
    data, size = config.data, config.data.grid_size
    low, high = CENTER_MARGIN * (size - 1), (1 - CENTER_MARGIN) * (size - 1)

    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets.renderers import render_composed

        return render_composed(factors, size, data.composition)

    return build_dataset(
        config,
        FactorSpace(
            tuple(
                Factor(name, data.num_positions, low, high, "px")
                for name in ("x_a", "y_a", "x_b", "y_b")
            )
        ),
        render=render,
        image_shape=(size, size, 1),
        polarity="dark" if data.composition == "product" else "bright",
        has_position=False,
        about="A disk and a square, put together by a known rule, drawn by "
        "code",
        license="mit",
        size_flag="num_positions",
    )
