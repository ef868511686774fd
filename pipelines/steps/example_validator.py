"""example_validator: checks the data sets on disk, and corrects nothing."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import count, run_step
from pipelines.steps import example_gen
from pipelines.steps.schema_gen import compare_schemas
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.materialized import Examples
from tfcomp.storage.files import read_json, write_text

# Largest difference of a pixel from rendering it again: another processor may
# round otherwise.
TOLERANCE = 1e-5
Reasons = Iterator[str]


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """The names of all checks that failed, and the reasons, a line each."""
    checks = {
        "leak": check_leaks,
        "splits": check_splits,
        "duplicates": check_duplicates,
        "coverage": check_coverage,
        "pixels": check_pixels,
    }
    for name, check in checks.items():
        for reason in check(dataset, train, ood):
            yield name, reason


def check_leaks(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """No training example lies in the region, every held-out one does."""
    region = dataset.region
    for split, examples, place, wrong in (
        ("training", train, "in", region.contains(train.factors)),
        ("held-out", ood, "outside", ~region.contains(ood.factors)),
    ):
        if wrong.any():
            first = examples.factors[wrong][0].tolist()
            yield (
                f"{wrong.sum()} {split} examples lie {place} the region "
                f"{region.spec}, the first at {first}"
            )


def check_splits(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """The splits have the examples that the flags describe."""
    splits, every = dataset.splits, dataset.splits.all
    for split, found, expected in (
        ("training", train.factors, splits.train),
        ("held-out", ood.factors, every.factors[every.is_ood]),
    ):
        if len(found) != len(expected):
            yield (
                f"{len(found)} {split} examples, the flags describe "
                f"{len(expected)}"
            )
            continue
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        wrong = np.flatnonzero(~same.all(axis=1))
        if wrong.size:
            yield (
                f"{wrong.size} {split} examples are not where the flags "
                f"describe them, the first is number {wrong[0]} at "
                f"{found[wrong[0]].tolist()}"
            )


def check_duplicates(dataset: Dataset, train: Examples, _: Examples) -> Reasons:
    """No combination repeats itself more often than the flags describe.

    A rotated digit has its upright image twice, at 0 and at 360 degrees.
    """
    found = _count_duplicates(train.factors)
    expected = _count_duplicates(dataset.splits.train)
    if found > expected:
        yield (
            f"{found} training examples repeat another one, the flags "
            f"describe {expected}"
        )


def check_coverage(dataset: Dataset, train: Examples, _: Examples) -> Reasons:
    """Every factor value that ID has occurs in training."""
    # Otherwise an OOD error may come from a value that was never seen.
    space, every = dataset.space, dataset.splits.all
    possible = space.to_index(every.factors[~every.is_ood])
    seen = space.to_index(train.factors)
    for column, factor in enumerate(space):
        missing = np.setdiff1d(possible[:, column], seen[:, column])
        if missing.size:
            first = factor.values()[missing[0]]
            yield (
                f"{missing.size} values of {factor.name} never occur in "
                f"training, the first is {first:g}"
            )


def check_pixels(dataset: Dataset, train: Examples, ood: Examples) -> Reasons:
    """Images are finite, from 0 to 1, not blank, and those of the factors."""
    yield from _check_images(dataset, "training", train)
    yield from _check_images(dataset, "held-out", ood)


def _check_images(dataset: Dataset, split: str, examples: Examples) -> Reasons:
    images = examples.images
    if not images.size:
        return
    infinite = ~np.isfinite(images).all(axis=(1, 2, 3))
    if infinite.any():
        yield _describe_images(split, infinite, "not finite")
        return
    low, high = images.min(), images.max()
    if low < 0 or high > 1:
        yield f"{split} pixels must be from 0 to 1, found {low:g} to {high:g}"
    blank = np.ptp(images, axis=(1, 2, 3)) == 0
    if blank.any():
        yield _describe_images(split, blank, "blank")
    if images.shape[1:] != dataset.image_shape:
        yield (
            f"{split} images are {list(images.shape[1:])}, the flags "
            f"describe {list(dataset.image_shape)}"
        )
        return
    truth = dataset.render_array(examples.factors)
    error = np.abs(images - truth).max(axis=(1, 2, 3))
    wrong = error > TOLERANCE
    if wrong.any():
        reason = _describe_images(split, wrong, "not those of their factors")
        yield f"{reason}, off by {error[wrong][0]:.3g}"


def _describe_images(split: str, wrong: np.ndarray, what: str) -> str:
    return (
        f"{wrong.sum()} {split} images are {what}, the first is number "
        f"{np.flatnonzero(wrong)[0]}"
    )


def _count_duplicates(factors: np.ndarray) -> int:
    return len(factors) - len({str(row) for row in factors.tolist()})


@dataclass(frozen=True)
class Anomaly:
    """What a check found wrong with a data set; each field is one line."""

    dataset: str
    check: str
    reason: str


def execute(
    profile: str,
    examples: dsl.Dataset,
    schema: dsl.Artifact,
    anomalies: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("example_validator") as step:
        parsed = parse_profile(profile)
        datasets = example_gen.list_datasets(parsed)
        found = validate_datasets(datasets, examples.path)
        if parsed.schema:
            written = read_json(Path(schema.path))
            for name, reason in compare_schemas(parsed.schema, written):
                found.append(Anomaly(name, "schema", reason))
        write_anomalies(Path(anomalies.path), found)
        numbers = {"datasets": len(datasets), "anomalies": len(found)}
        step.log(metrics, numbers)
        if found:
            raise RunError(describe_anomalies(found))
        step.note = f"no anomalies in {count(len(datasets), 'data set')}"


def validate_datasets(
    configs: Sequence[RunConfig], examples_dir: str | Path
) -> list[Anomaly]:
    """Checks the data sets on disk, given one run for each of them."""
    anomalies = []
    for config in configs:
        name = example_gen.describe_dataset(config)
        try:
            train, ood = example_gen.load_splits(config, examples_dir)
        except RunError as error:
            anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        found = find_anomalies(make_dataset(config), train, ood)
        anomalies += [Anomaly(name, *pair) for pair in found]
    return anomalies


def write_anomalies(path: Path, anomalies: Sequence[Anomaly]) -> None:
    """Writes them as JSON."""
    content = {"anomalies": list(map(asdict, anomalies))}
    write_text(path, json.dumps(content, indent=2) + "\n")


def describe_anomalies(anomalies: Sequence[Anomaly]) -> str:
    """The first one, and how many more there are."""
    first, *others = anomalies
    line = f"{first.check}: {first.reason} ({first.dataset})"
    return line + (f", and {len(others)} more anomalies" if others else "")
