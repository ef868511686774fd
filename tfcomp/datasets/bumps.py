"""Gaussian bumps on the factor combinations outside a region (sec. 3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.dataset import Render
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.factors import make_pixel_space
from tfcomp.datasets.regions import Region
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_training_table
from tfcomp.datasets.splits import make_splits


def make_bumps(config: RunConfig) -> Dataset:
    """Bumps at ID positions, on the grid or continuous.

    Raises:
        ConfigError: For an impossible region or too many examples.
    """
    if config.data.num_bumps:
        rule = "must be 0 for the dataset gaussian_bumps (see --num_train)"
        raise ConfigError("num_bumps", rule, config.data.num_bumps)
    space = make_pixel_space(config.data.grid_size)
    region = parse_region(config.data.region, space)
    train = draw_training_table(config, space, region)
    return make_pixel_dataset(config, space, region, train)


def make_pixel_dataset(
    config: RunConfig,
    space: FactorSpace,
    region: Region,
    train: np.ndarray,
    **others: Any,
) -> Dataset:
    """A dataset of bumps and stripes, with the settings of a run.

    Args:
        config: The run.
        space: Positions in pixels.
        region: Held-out positions.
        train: Training table [n, 2]; NaN where a coordinate is absent.
        **others: More attributes of the dataset.

    Raises:
        ConfigError: If the region leaves nothing to train or to test on.
    """
    size = config.data.grid_size
    return Dataset(
        name=config.data.dataset,
        space=space,
        region=region,
        splits=make_splits(space, region, train),
        render=make_pixel_renderer(config.data),
        image_shape=(size, size, 1),
        polarity=config.data.polarity,
        **others,
    )


def make_pixel_renderer(data: DataConfig, *, plus: bool = False) -> Render:
    """The renderer with the settings of a run.

    Args:
        data: Size of the images, width and polarity of the bumps.
        plus: Whether to draw the sum of two stripes in place of a bump.
    """

    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets import renderers

        draw = renderers.render_plus if plus else renderers.render_gaussians
        return draw(factors, data.grid_size, data.sigma, data.polarity)

    return render
