"""Builds the dataset of a run, which `--dataset` chooses."""

import dataclasses
from typing import Any

import numpy as np

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import Registry
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import splits
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.datasets.regions import Region, parse_region

DATASETS = Registry("dataset")


def make_dataset(config: RunConfig) -> Dataset:
    """Builds the dataset that the configuration names, without TensorFlow."""
    data = config.data
    dataset = DATASETS.get(data.dataset).load()(config)
    flags: dict[str, Any] = {"noise": data.noise, "balance": data.balance}
    others = {name: value for name, value in flags.items() if value}
    if pairs := data.correlation:
        if data.balance:
            rule = "must be false with --correlation, which weighs images"
            raise ConfigError("balance", rule, True)
        weights = splits.weigh(dataset.splits.train, dataset.space, pairs)
        # As many images of equal weight are as good (Kish 1965).
        number = weights.sum() ** 2 / np.square(weights).sum()
        note = (
            f"correlated: {pairs}, like {number:,.1f} of {len(weights):,} "
            "training images of equal weight, (sum w)^2 / sum w^2"
        )
        unseen = len(weights) - len(np.unique(splits.repeat_rows(weights)))
        note += f"; {unseen:,} are too rare to be shown at all" * bool(unseen)
        others |= {"weights": weights, "notes": (*dataset.notes, note)}
    return dataclasses.replace(dataset, **others)


def build_dataset(
    config: RunConfig,
    space: FactorSpace,
    region: Region | None = None,
    train: np.ndarray | None = None,
    cells: np.ndarray | None = None,
    kind: type[Dataset] = Dataset,
    **others: Any,
) -> Dataset:
    """Builds a dataset with the splits of a configuration, unless given."""
    region = region or parse_region(config.data.region, space, cells)
    if train is None:
        train = splits.draw_training_table(config, space, region, cells)
    options = config.eval_points, cells, config.data.train_all
    points = splits.make_splits(space, region, train, *options)
    return kind(config.data.dataset, space, region, points, **others)
