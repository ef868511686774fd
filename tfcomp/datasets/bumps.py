"""Gaussian bumps on the factor combinations outside a region (sec. 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import DataConfig
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import make_pixel_space
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_training_table
from tfcomp.datasets.splits import make_splits


def make_bumps(config: RunConfig) -> Dataset:
    """Bumps at ID positions, on the grid or continuous.

    Raises:
        ConfigError: For an impossible region or too many examples.
    """
    if config.data.num_bumps:
        raise ConfigError(
            "num_bumps",
            "must be 0 for the dataset gaussian_bumps (see --num_train)",
            config.data.num_bumps,
        )
    space = make_pixel_space(config.data.grid_size)
    region = parse_region(config.data.region, space)
    train = draw_training_table(config, space, region)
    size = config.data.grid_size
    return Dataset(
        name=config.data.dataset,
        space=space,
        region=region,
        splits=make_splits(space, region, train),
        render=gaussian_renderer(config.data),
        image_shape=(size, size, 1),
        polarity=config.data.polarity,
    )


def gaussian_renderer(data: DataConfig) -> Callable[[Any], Any]:
    """The bump (and stripe) renderer with the settings of a run."""

    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets.renderers import render_gaussians

        return render_gaussians(
            factors, data.grid_size, data.sigma, data.polarity
        )

    return render
