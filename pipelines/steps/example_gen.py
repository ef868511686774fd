"""Writes the datasets that the trials of a profile train on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.profile import Profile, make_sweeps, parse_profile
from pipelines.running_step import list_files, place, run_step
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    select_settings,
)
from tfcomp.storage.code_version import hash_files

if TYPE_CHECKING:
    from kfp import dsl


def run(profile: str, work_dir: str, examples: dsl.Dataset) -> None:
    """Writes all datasets; the artifact gets the `digest` of their files."""
    with start_tensorflow():
        import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    with run_step("example_gen") as step:
        folder = place(examples, work_dir, "examples")
        configs = list_datasets(parse_profile(profile))
        written = [materialize(config, str(folder)) for config in configs]
        files = [file for path in written for file in list_files(path)]
        examples.metadata["digest"] = hash_files(files)
        step.note = f"datasets: {len(written)}, in {folder}"


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
