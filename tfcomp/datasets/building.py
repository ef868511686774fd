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
    """Builds the dataset that a configuration names, without TensorFlow.

    Args:
        config: The settings of a run, as `parse_config` makes them.

    Raises:
        ConfigError: For settings that do not fit each other.
        RunError: For data that are not as the run had them.
    """
    data = config.data
    dataset = DATASETS.get(data.dataset).load()(config)
    if not isinstance(dataset, Dataset):
        rule = f"must return a Dataset, not {type(dataset).__name__}"
        raise ConfigError("dataset", rule, data.dataset)

    if data.correlation:
        if data.balance:
            rule = "must be false with --correlation, which weighs images"
            raise ConfigError("balance", rule, True)
        dataset = _correlate(dataset, data.correlation)

    # A builder of a plugin may have noise of its own.
    if data.noise:
        dataset = dataclasses.replace(dataset, noise=data.noise)
    if data.balance:
        dataset = dataclasses.replace(dataset, balance=True)
    return dataset


def _correlate(dataset: Dataset, pairs: str) -> Dataset:
    """Weighs the training images of a dataset by `--correlation`."""
    weights = splits.weigh(dataset.splits.train, dataset.space, pairs)
    # As many images of equal weight are as good (Kish 1965).
    num_equal = weights.sum() ** 2 / np.square(weights).sum()
    note = (
        f"correlated: {pairs}, like {num_equal:,.1f} of {len(weights):,} "
        "training images of equal weight, (sum w)^2 / sum w^2"
    )
    num_hidden = len(weights) - len(np.unique(splits.repeat_rows(weights)))
    if num_hidden:
        note += f"; {num_hidden:,} are too rare to be shown at all"
    notes = (*dataset.notes, note)
    return dataclasses.replace(dataset, weights=weights, notes=notes)


def build_dataset(
    config: RunConfig,
    space: FactorSpace,
    region: Region | None = None,
    train: np.ndarray | None = None,
    cells: np.ndarray | None = None,
    kind: type[Dataset] = Dataset,
    **fields: Any,
) -> Dataset:
    """Builds a dataset with the splits of a configuration.

    Args:
        config: The settings of a run.
        space: The factors.
        region: What is held out; by default `--region`.
        train: Factor values of the training examples [n, F]; by default they
            are sampled as `--num_train` and `--coordinates` say.
        cells: The combinations that exist [n, F]; by default the grid.
        kind: The class of the dataset.
        **fields: Its other fields.
    """
    if region is None:
        region = parse_region(config.data.region, space, cells)
    if train is None:
        train = splits.draw_training_table(config, space, region, cells)
    points = splits.make_splits(
        space,
        region,
        train,
        eval_points=config.eval_points,
        cells=cells,
        train_all=config.data.train_all,
    )
    return kind(
        name=config.data.dataset,
        space=space,
        region=region,
        splits=points,
        **fields,
    )
