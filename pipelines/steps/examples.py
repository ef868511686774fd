"""Steps `example_gen` and `example_validator`: writes datasets; checks them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.profile import Profile, make_works
from pipelines.steps import place, run_step
from tfcomp.config.errors import RunError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    name_examples,
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


@dataclass(frozen=True)
class Anomaly:
    """A check that failed, and the reason on one line."""

    check: str
    reason: str
    dataset: str = ""  # the name of its folder


def validate(profile: str, examples_dir: str, anomalies: str) -> None:
    """Writes all anomalies to a JSON file; a RunError names the first."""
    with run_step("example_validator") as step:
        configs = list_datasets(Profile.from_json(profile))
        found = []
        for config in configs:
            found += validate_dataset(config, examples_dir)
        content = {"anomalies": [dataclasses.asdict(each) for each in found]}
        write_text(Path(anomalies), json.dumps(content, indent=2) + "\n")

        if found:
            first = found[0]
            line = f"{first.check}: {first.reason} ({first.dataset})"
            raise RunError(f"{line}; anomalies: {len(found)}")
        step.note = f"no anomalies, datasets: {len(configs)}"


def validate_dataset(
    config: RunConfig, examples_dir: str | Path
) -> list[Anomaly]:
    """Checks the dataset of a run on disk; corrects nothing."""
    name = name_examples(config)
    dataset = make_dataset(config)
    try:
        train = load_split(config, examples_dir, "train", dataset)
        held_out = None
        if dataset.splits.all.is_ood.any():
            held_out = load_split(config, examples_dir, "ood", dataset)
    except RunError as error:
        return [Anomaly("readable", str(error), name)]

    anomalies = find_anomalies(dataset, train, held_out)
    return [dataclasses.replace(each, dataset=name) for each in anomalies]


def find_anomalies(
    dataset: Dataset, train: Examples, held_out: Examples | None
) -> Iterator[Anomaly]:
    """Yields an anomaly for each check of the examples that fails."""
    splits = dataset.splits
    region = dataset.region
    leaks = region.contains(train.factors)
    # A control (--train_all) trains on what other runs hold out.
    is_control = region.contains(splits.train).any()
    if leaks.any() and not is_control:
        first = train.factors[leaks][0].tolist()
        yield Anomaly(
            "leak",
            f"{leaks.sum()} training examples lie in the region {region.spec}, "
            f"the first at {first}",
        )

    # A combination can have several training images.
    truth = dataset.render_training(np.arange(len(splits.train)))
    yield from compare_split("training", train, Examples(splits.train, truth))
    if held_out is not None:
        factors = splits.all.factors[splits.all.is_ood]
        truth = dataset.render_array(factors)
        yield from compare_split("held-out", held_out, Examples(factors, truth))


def compare_split(
    name: str, examples: Examples, expected: Examples
) -> Iterator[Anomaly]:
    """Yields an anomaly if factors or else images are not the expected ones."""
    problem = find_difference(examples.factors, expected.factors)
    if problem:
        yield Anomaly("splits", f"factors of {name} examples: {problem}")
        return
    problem = find_difference(examples.images, expected.images, TOLERANCE)
    if problem:
        yield Anomaly("pixels", f"{name} images: {problem}")


def find_difference(
    found: np.ndarray, expected: np.ndarray, tolerance: float = 0.0
) -> str:
    """Describes how rows differ from those that the flags describe."""
    if found.shape != expected.shape:
        shapes = f"{list(found.shape)}, the flags describe "
        return f"their shape is {shapes}{list(expected.shape)}"
    same = np.isclose(found, expected, rtol=0, atol=tolerance, equal_nan=True)
    wrong = np.flatnonzero(~same.reshape(len(same), -1).all(axis=1))
    if not wrong.size:
        return ""
    return f"{wrong.size} differ from the flags, the first is {wrong[0]}"
