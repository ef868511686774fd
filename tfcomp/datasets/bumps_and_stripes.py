"""Gaussian bumps (section 3.1) and stripes (section 4.2, appendix E).

A vertical stripe at x is the combination (x, absent), a horizontal one at y
is (absent, y): each factor shown by itself, rendered in pixel space. Among
stripes, no combination of two values is ever trained on but the bumps that
are asked for, which are drawn from ID.
"""

from typing import Any

import numpy as np

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset, Render, build_dataset
from tfcomp.datasets.factors import FactorSpace, make_pixel_space
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_cells


def make_bumps(config: RunConfig) -> Dataset:
    """Bumps at ID positions, on the grid or continuous."""
    if config.data.num_bumps:
        rule = "must be 0 for the dataset gaussian_bumps (see --num_train)"
        raise ConfigError("num_bumps", rule, config.data.num_bumps)
    space = make_pixel_space(config.data.grid_size)
    about = "A Gaussian bump at a position, drawn by code"
    return _build(config, space, about=about)


def make_stripes(config: RunConfig) -> Dataset:
    """All stripes, and `num_bumps` bumps at different ID cells.

    The truth of a combination is a bump; that of a network that has seen
    stripes only is the sum of the two stripes, and both are scored.
    """
    space = make_pixel_space(config.data.grid_size)
    region = parse_region(config.data.region, space)
    stripes, grid = _list_stripes(space), space.grid()
    bumps = draw_cells(
        grid[~region.contains(grid)],
        config.data.num_bumps,
        "num_bumps",
        np.random.default_rng([config.training.seed, 0]),
    )
    notes = ()
    if (config.data.num_train, config.data.coordinates) != (0, "grid"):
        notes = (
            "ignored: --num_train and --coordinates, the dataset stripes has "
            "all stripes, and --num_bumps bumps on the grid",
        )
    return _build(
        config,
        space,
        region=region,
        # A cross or a gap holds back stripes, too.
        train=np.concatenate([stripes[~region.contains(stripes)], bumps]),
        other_truths={"plus": _make_renderer(config.data, "render_plus")},
        notes=notes,
        about="Gaussian stripes for training, a bump for every combination, "
        "drawn by code",
    )


def _list_stripes(space: FactorSpace) -> np.ndarray:
    """One row per value of each factor, the others absent (NaN)."""
    rows = []
    for column, factor in enumerate(space):
        stripes = np.full((factor.size, len(space)), np.nan, np.float32)
        stripes[:, column] = factor.values()
        rows.append(stripes)
    return np.concatenate(rows)


def _build(config: RunConfig, space: FactorSpace, **others: Any) -> Dataset:
    return build_dataset(
        config,
        space,
        render=_make_renderer(config.data, "render_gaussians"),
        image_shape=(config.data.grid_size, config.data.grid_size, 1),
        polarity=config.data.polarity,
        size_flag="grid_size",
        license="mit",
        **others,
    )


def _make_renderer(data: DataConfig, name: str) -> Render:
    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets import renderers

        draw = getattr(renderers, name)
        return draw(factors, data.grid_size, data.sigma, data.polarity)

    return render
