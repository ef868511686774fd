"""Stripes, alone or mixed with a few bumps (section 4.2, appendix E).

A vertical stripe at x is the combination (x, absent), a horizontal one at y
is (absent, y): each factor shown by itself, rendered in pixel space. No
combination of two values is ever trained on but the bumps that are asked
for, which are drawn from ID.
"""

from __future__ import annotations

import numpy as np

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.bumps import make_pixel_dataset
from tfcomp.datasets.bumps import make_pixel_renderer
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.factors import make_pixel_space
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_cells


def make_stripes(config: RunConfig) -> Dataset:
    """All stripes, and `num_bumps` bumps at different ID cells.

    The truth of a combination is a bump; that of a network that has seen
    stripes only is the sum of the two stripes, and both are scored.

    Raises:
        ConfigError: For an impossible region or too many bumps.
    """
    space = make_pixel_space(config.data.grid_size)
    region = parse_region(config.data.region, space)
    stripes = make_stripe_table(space)
    grid = space.grid()
    bumps = draw_cells(
        grid[~region.contains(grid)],
        config.data.num_bumps,
        "num_bumps",
        np.random.default_rng([config.training.seed, 0]),
    )
    # A cross or a gap holds back stripes, too.
    train = np.concatenate([stripes[~region.contains(stripes)], bumps])
    plus = make_pixel_renderer(config.data, plus=True)
    return make_pixel_dataset(
        config, space, region, train, other_truths={"plus": plus}
    )


def make_stripe_table(space: FactorSpace) -> np.ndarray:
    """One row per value of each factor, the others absent (NaN)."""
    rows = []
    for column, factor in enumerate(space):
        stripes = np.full((factor.size, len(space)), np.nan, np.float32)
        stripes[:, column] = factor.values()
        rows.append(stripes)
    return np.concatenate(rows)
