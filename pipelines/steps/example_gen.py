"""example_gen: the data sets that the trials of a profile train on."""

import json
from pathlib import Path

from kfp import dsl

from pipelines.profile import Profile, make_sweeps, parse_profile
from pipelines.running_step import count, list_files, run_step
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    select_settings,
)
from tfcomp.storage.code_version import hash_files


def execute(profile: str, work_dir: str, examples: dsl.Dataset) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("example_gen") as step:
        step.place(examples, work_dir, "examples")
        configs = list_datasets(parse_profile(profile))
        folders = [materialize(config, examples.path) for config in configs]
        examples.metadata["datasets"] = len(folders)
        # The validator is skipped only if it has seen these very files.
        examples.metadata["digest"] = hash_files(
            file for folder in folders for file in list_files(folder)
        )
        step.note = f"{count(len(folders), 'data set')} in {examples.path}"


def list_datasets(profile: Profile) -> list[RunConfig]:
    """One trial for each data set that the sweeps of a profile need."""
    found: dict[str, RunConfig] = {}
    for sweep in make_sweeps(profile):
        for trial in sweep.items:
            settings = select_settings(trial.config)
            key = json.dumps(settings, sort_keys=True)
            found.setdefault(key, trial.config)
    return list(found.values())


def describe_dataset(config: RunConfig) -> str:
    """A data set in one line, as `gaussian_bumps region=corner:14 ...`."""
    settings = select_settings(config)
    name = settings.pop("dataset")
    return " ".join([str(name), *(f"{k}={v}" for k, v in settings.items())])


def load_splits(
    config: RunConfig, examples_dir: str | Path
) -> tuple[Examples, Examples]:
    """The training and the held-out examples; RunError if unreadable."""
    train = load_split(config, examples_dir, "train")
    if config.data.region == "none":
        return train, Examples(train.factors[:0], train.images[:0])
    return train, load_split(config, examples_dir, "ood")
