"""Steps `example_gen` and `example_validator`: writes datasets; checks them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.profile import Profile, make_works, parse_profile
from pipelines.steps import list_files, place, run_step
from tfcomp.config.errors import RunError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import (
    Examples,
    load_split,
    materialize,
    select_settings,
)
from tfcomp.storage.code_version import hash_files
from tfcomp.storage.files import write_text
from tfcomp.sweeps.sweep_run import Sweep

if TYPE_CHECKING:
    from kfp import dsl

TOLERANCE = 1e-5  # of a pixel: processors round differently


def generate(profile: str, work_dir: str, examples: dsl.Dataset) -> None:
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
    for sweep in (w for w in make_works(profile) if isinstance(w, Sweep)):
        for trial in sweep.items:
            settings = select_settings(trial.config)
            key = json.dumps(settings, sort_keys=True)
            configs.setdefault(key, trial.config)
    return list(configs.values())


@dataclass(frozen=True)
class Anomaly:
    """A check that failed for a dataset, and the reason on one line."""

    dataset: str
    check: str
    reason: str


def validate(profile: str, examples_dir: str, anomalies: str) -> None:
    """Writes all anomalies to a JSON file; a RunError names the first."""
    with run_step("example_validator") as step:
        configs = list_datasets(parse_profile(profile))
        found = validate_datasets(configs, examples_dir)
        content = {"anomalies": list(map(asdict, found))}
        write_text(Path(anomalies), json.dumps(content, indent=2) + "\n")
        if found:
            first, more = found[0], len(found) - 1
            line = f"{first.check}: {first.reason} ({first.dataset})"
            raise RunError(line + f", and {more} more anomalies" * bool(more))
        step.note = f"no anomalies, datasets: {len(configs)}"


def validate_datasets(
    configs: Sequence[RunConfig], examples_dir: str | Path
) -> list[Anomaly]:
    """Checks datasets on disk, given a run of each; corrects nothing."""
    anomalies = []
    for config in configs:
        settings = select_settings(config)
        name = str(settings.pop("dataset"))
        name = " ".join([name, *(f"{k}={v}" for k, v in settings.items())])
        try:
            train = load_split(config, examples_dir, "train")
            held_out = Examples(train.factors[:0], train.images[:0])
            if config.data.region != "none":
                held_out = load_split(config, examples_dir, "ood")
        except RunError as error:
            anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        pairs = find_anomalies(make_dataset(config), train, held_out)
        anomalies += [Anomaly(name, *pair) for pair in pairs]
    return anomalies


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """Yields the name and the reason of each check that fails."""
    region, splits = dataset.region, dataset.splits
    held_out = splits.all.factors[splits.all.is_ood]
    leaks = region.contains(train.factors)
    leaks &= not region.contains(splits.train).any()  # a control (--train_all)
    outside = ~region.contains(ood.factors)
    for split, examples, factors, where, wrong in (
        ("training", train, splits.train, "in", leaks),
        ("held-out", ood, held_out, "outside", outside),
    ):
        if wrong.any():
            first = examples.factors[wrong][0].tolist()
            yield (
                "leak",
                f"{wrong.sum()} {split} examples lie {where} the region "
                f"{region.spec}, the first at {first}",
            )
        for reason in _compare_factors(examples.factors, factors):
            yield "splits", f"{split} examples: {reason}"
        for reason in _find_wrong_pixels(dataset, examples):
            yield "pixels", f"{split} images: {reason}"


def _compare_factors(
    factors: np.ndarray, expected: np.ndarray
) -> Iterator[str]:
    """Yields the reason if factors differ from the flags."""
    if len(factors) != len(expected):
        yield f"{len(factors)}, the flags describe {len(expected)}"
        return
    same = (factors == expected) | (np.isnan(factors) & np.isnan(expected))
    wrong = np.flatnonzero(~same.all(axis=1))
    if wrong.size:
        yield (
            f"{wrong.size} differ from the flags, the first has index "
            f"{wrong[0]}: {factors[wrong[0]].tolist()}"
        )


def _find_wrong_pixels(dataset: Dataset, examples: Examples) -> Iterator[str]:
    """Yields reasons against images: blank, or no match of their factors."""
    images, factors = examples.images, examples.factors
    if not images.size:
        return
    if images.shape[1:] != dataset.image_shape:
        shape, right = list(images.shape[1:]), list(dataset.image_shape)
        yield f"they are {shape}, the flags describe {right}"
        return
    if np.array_equal(factors, dataset.splits.train, equal_nan=True):
        # A combination can have several images.
        truth = dataset.render_training(np.arange(len(factors)))
    else:
        truth = dataset.render_array(factors)
    blank, empty = (np.ptp(x, axis=(1, 2, 3)) == 0 for x in (images, truth))
    # NaN is no match, either.
    match = np.abs(images - truth).max(axis=(1, 2, 3)) <= TOLERANCE
    for wrong, what in (
        (blank & ~empty, "are blank"),
        (~match, "do not match their factors"),
    ):
        if wrong.any():
            first = np.flatnonzero(wrong)[0]
            yield f"{wrong.sum()} {what}, the first has index {first}"
