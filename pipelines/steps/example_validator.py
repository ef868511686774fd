"""Checks the datasets on disk; corrects nothing."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pipelines.profile import parse_profile
from pipelines.running_step import run_step
from pipelines.steps.example_gen import (
    describe_dataset,
    list_datasets,
    load_splits,
)
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import Examples
from tfcomp.storage.files import write_text

TOLERANCE = 1e-5  # of a pixel: processors round differently


@dataclass(frozen=True)
class Anomaly:
    """A check that failed for a dataset, and the reason on one line."""

    dataset: str
    check: str
    reason: str


def run(profile: str, examples_dir: str, anomalies: str) -> None:
    """Checks the datasets of a profile.

    All anomalies are written to a JSON file; a RunError names the first.
    """
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
    """Checks datasets on disk, given a run of each."""
    anomalies = []
    for config in configs:
        name = describe_dataset(config)
        try:
            train, ood = load_splits(config, examples_dir)
        except RunError as error:
            anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        pairs = find_anomalies(make_dataset(config), train, ood)
        anomalies += [Anomaly(name, *pair) for pair in pairs]
    return anomalies


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """Yields the name and the reason of each check that fails."""
    splits, every = dataset.splits, dataset.splits.all
    held_out = every.factors[every.is_ood]
    for reason in find_leaks(dataset, train.factors, ood.factors):
        yield "leak", reason
    for split, examples, factors in (
        ("training", train, splits.train),
        ("held-out", ood, held_out),
    ):
        for reason in compare_factors(examples.factors, factors):
            yield "splits", f"{split} examples: {reason}"
        for reason in find_wrong_pixels(dataset, examples):
            yield "pixels", f"{split} images: {reason}"


def find_leaks(
    dataset: Dataset, train: np.ndarray, ood: np.ndarray
) -> Iterator[str]:
    """Yields reasons: training examples inside the region, or OOD outside."""
    region = dataset.region
    for split, factors, place, wrong in (
        ("training", train, "in", region.contains(train)),
        ("held-out", ood, "outside", ~region.contains(ood)),
    ):
        if wrong.any():
            first = factors[wrong][0].tolist()
            yield (
                f"{wrong.sum()} {split} examples lie {place} the region "
                f"{region.spec}, the first at {first}"
            )


def compare_factors(factors: np.ndarray, expected: np.ndarray) -> Iterator[str]:
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


def find_wrong_pixels(dataset: Dataset, examples: Examples) -> Iterator[str]:
    """Yields reasons against images: blank, or no match of their factors."""
    images = examples.images
    if not images.size:
        return
    if images.shape[1:] != dataset.image_shape:
        shape, right = list(images.shape[1:]), list(dataset.image_shape)
        yield f"they are {shape}, the flags describe {right}"
        return
    blank = np.ptp(images, axis=(1, 2, 3)) == 0
    truth = dataset.render_array(examples.factors)
    # NaN is no match, either.
    match = np.abs(images - truth).max(axis=(1, 2, 3)) <= TOLERANCE
    for wrong, what in (
        (blank, "are blank"),
        (~match, "do not match their factors"),
    ):
        if wrong.any():
            first = np.flatnonzero(wrong)[0]
            yield f"{wrong.sum()} {what}, the first has index {first}"
