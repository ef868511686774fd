"""Steps `example_gen` and `example_validator`: writes datasets; checks them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.profile import Profile, make_works
from pipelines.steps import place, run_step
from tfcomp.config.errors import RunError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    name_examples,
    render_splits,
)
from tfcomp.storage.files import write_text
from tfcomp.sweeps.sweep_run import Sweep

if TYPE_CHECKING:
    from kfp import dsl

TOLERANCE = 1e-5  # of a pixel: processors round differently


def generate(profile: str, work_dir: str, examples: dsl.Dataset) -> None:
    """Writes the dataset of every sweep."""
    with start_tensorflow():
        import tensorflow_datasets as tfds

    tfds.disable_progress_bar()
    with run_step("example_gen") as step:
        folder = place(examples, work_dir, "examples")
        configs = list_datasets(Profile.from_json(profile))
        for config in configs:
            materialize(config, folder)
        step.note = f"datasets: {len(configs)}, in {folder}"


def list_datasets(profile: Profile) -> list[RunConfig]:
    """Lists one run for each dataset that the sweeps train on."""
    configs: dict[str, RunConfig] = {}
    for work in make_works(profile):
        if isinstance(work, Sweep):
            for trial in work.items:
                configs.setdefault(name_examples(trial.config), trial.config)
    return list(configs.values())


def validate(profile: str, examples_dir: str, anomalies: str) -> None:
    """Writes all anomalies to a JSON file; a RunError names the first."""
    with run_step("example_validator") as step:
        configs = list_datasets(Profile.from_json(profile))
        found = []
        for config in configs:
            for anomaly in find_anomalies(config, examples_dir):
                found.append(f"{name_examples(config)}: {anomaly}")
        content = {"anomalies": found}
        write_text(Path(anomalies), json.dumps(content, indent=2) + "\n")

        if found:
            raise RunError(f"{found[0]}; anomalies: {len(found)}")
        step.note = f"no anomalies, datasets: {len(configs)}"


def find_anomalies(
    config: RunConfig, examples_dir: str | Path
) -> Iterator[str]:
    """Yields what is wrong with the dataset of a run on disk."""
    dataset = make_dataset(config)
    for name, expected in render_splits(dataset).items():
        try:
            split = load_split(config, examples_dir, name, dataset)
        except RunError as error:
            yield str(error)
            continue
        if name == "train":
            yield from find_leak(dataset, split)
        yield from compare_split(name, split, expected)


def find_leak(dataset: Dataset, train: Examples) -> Iterator[str]:
    """Yields a line if there are training examples in the held-out region."""
    region = dataset.region
    if region.contains(dataset.splits.train).any():
        return  # a control (--train_all) trains on what other runs hold out
    leaks = region.contains(train.factors)
    if leaks.any():
        first = train.factors[leaks][0].tolist()
        yield (
            f"leak: {leaks.sum()} training examples lie in the region "
            f"{region.spec}, the first at {first}"
        )


def compare_split(
    name: str, split: Examples, expected: Examples
) -> Iterator[str]:
    """Yields a line if factors, or else images, are not the expected ones."""
    for part, tolerance in {"factors": 0.0, "images": TOLERANCE}.items():
        written = getattr(split, part)
        wanted = getattr(expected, part)
        if written.shape != wanted.shape:
            shapes = f"{list(written.shape)} in place of {list(wanted.shape)}"
            yield f"{part} of {name}: shape {shapes}"
            return
        same = np.isclose(
            written, wanted, rtol=0, atol=tolerance, equal_nan=True
        )
        wrong = np.flatnonzero(~same.reshape(len(same), -1).all(axis=1))
        if wrong.size:
            first = f"{wrong.size} are wrong, the first is {wrong[0]}"
            yield f"{part} of {name}: {first}"
            return
