"""Writes the datasets that the trials of a profile train on."""

import json
from pathlib import Path

from kfp import dsl

from pipelines.profile import Profile, make_sweeps, parse_profile
from pipelines.running_step import RunningStep, count, list_files
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    select_settings,
)
from tfcomp.storage.code_version import hash_files


def write_examples(
    step: RunningStep, profile: str, examples: dsl.Dataset
) -> None:
    """Writes all datasets, and hashes their files."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    configs = list_datasets(parse_profile(profile))
    folders = [materialize(config, examples.path) for config in configs]
    examples.metadata["datasets"] = len(folders)
    # The SDK skips the validator only for these very files.
    examples.metadata["digest"] = hash_files(
        file for folder in folders for file in list_files(folder)
    )
    step.note = f"{count(len(folders), 'dataset')} in {examples.path}"


def list_datasets(profile: Profile) -> list[RunConfig]:
    """Returns one trial for each dataset that the sweeps need."""
    configs: dict[str, RunConfig] = {}
    for sweep in make_sweeps(profile):
        for trial in sweep.items:
            settings = select_settings(trial.config)
            key = json.dumps(settings, sort_keys=True)
            configs.setdefault(key, trial.config)
    return list(configs.values())


def describe_dataset(config: RunConfig) -> str:
    """Formats a dataset, as `gaussian_bumps region=corner:14 ...`."""
    settings = select_settings(config)
    name = settings.pop("dataset")
    return " ".join([str(name), *(f"{k}={v}" for k, v in settings.items())])


def load_splits(
    config: RunConfig, examples_dir: str | Path
) -> tuple[Examples, Examples]:
    """Loads the training and held-out examples; RunError if unreadable."""
    train = load_split(config, examples_dir, "train")
    if config.data.region == "none":
        return train, Examples(train.factors[:0], train.images[:0])
    return train, load_split(config, examples_dir, "ood")
