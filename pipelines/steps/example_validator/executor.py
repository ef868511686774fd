"""example_validator: what can be wrong with examples on disk.

The examples are compared with the rules of a held-out region and with what
the flags describe, and never corrected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.steps.example_gen.executor import describe_dataset
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets import make_dataset
from tfcomp.datasets.materialized import Examples
from tfcomp.datasets.materialized import load_split
from tfcomp.storage.files import write_text

# Of a pixel, against rendering it again: another processor may round
# otherwise.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Anomaly:
    """Something that is wrong with a data set.

    Attributes:
        dataset: The data set in one line.
        check: Name of the check that failed.
        reason: What was found, in one line.
    """

    dataset: str
    check: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """What the validator found.

    Attributes:
        anomalies: What is wrong.
        statistics: By data set and split, the number of examples and the
            statistics of their pixels.
    """

    anomalies: list[Anomaly]
    statistics: dict[str, dict[str, dict[str, float]]]

    def write(self, path: Path) -> None:
        """Writes `anomalies` and `statistics` as JSON."""
        content = {
            "anomalies": [asdict(anomaly) for anomaly in self.anomalies],
            "statistics": self.statistics,
        }
        write_text(path, json.dumps(content, indent=2) + "\n")

    def describe(self) -> str:
        """The first anomaly, and how many more there are."""
        first = self.anomalies[0]
        line = f"{first.check}: {first.reason} ({first.dataset})"
        more = len(self.anomalies) - 1
        return line + (f", and {more} more anomalies" if more else "")


def validate_datasets(
    configs: Sequence[RunConfig], examples_dir: str | Path
) -> Findings:
    """Checks data sets on disk."""
    anomalies: list[Anomaly] = []
    statistics = {}
    for config in configs:
        name = describe_dataset(config)
        try:
            train, ood = load_splits(config, examples_dir)
        except RunError as error:
            anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        statistics[name] = {
            "train": summarize_pixels(train),
            "ood": summarize_pixels(ood),
        }
        for check, reason in find_anomalies(make_dataset(config), train, ood):
            anomalies.append(Anomaly(name, check, reason))
    return Findings(anomalies, statistics)


def load_splits(
    config: RunConfig, examples_dir: str | Path
) -> tuple[Examples, Examples]:
    """The training and the held-out examples, which may be none.

    Raises:
        RunError: If they cannot be read.
    """
    train = load_split(config, examples_dir, "train")
    if config.data.region == "none":
        return train, Examples(train.factors[:0], train.images[:0])
    return train, load_split(config, examples_dir, "ood")


def find_anomalies(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """Checks one data set; yields the name of a check and a reason."""
    yield from check_leaks(dataset, train, ood)
    yield from check_splits(dataset, train, ood)
    yield from check_duplicates(dataset, train)
    yield from check_coverage(dataset, train)
    for split, examples in (("training", train), ("held-out", ood)):
        yield from check_pixels(dataset, split, examples)


def check_leaks(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """No training example lies in the region, every held-out one does."""
    region = dataset.region
    leaks = region.contains(train.factors)
    if leaks.any():
        first = train.factors[leaks][0].tolist()
        yield (
            "leak",
            f"{leaks.sum()} training examples lie in the region "
            f"{region.spec}, the first at {first}",
        )
    outside = ~region.contains(ood.factors)
    if outside.any():
        first = ood.factors[outside][0].tolist()
        yield (
            "leak",
            f"{outside.sum()} held-out examples lie outside the region "
            f"{region.spec}, the first at {first}",
        )


def check_splits(
    dataset: Dataset, train: Examples, ood: Examples
) -> Iterator[tuple[str, str]]:
    """The splits have the examples that the flags describe."""
    splits = dataset.splits
    for split, found, expected in (
        ("training", train.factors, splits.train),
        ("held-out", ood.factors, splits.grid[splits.is_ood]),
    ):
        if len(found) != len(expected):
            yield (
                "splits",
                f"{len(found)} {split} examples, the flags describe "
                f"{len(expected)}",
            )
            continue
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        wrong = np.flatnonzero(~same.all(axis=1))
        if wrong.size:
            yield (
                "splits",
                f"{wrong.size} {split} examples are not where the flags "
                f"describe them, the first is number {wrong[0]} at "
                f"{found[wrong[0]].tolist()}",
            )


def check_duplicates(
    dataset: Dataset, train: Examples
) -> Iterator[tuple[str, str]]:
    """No combination is there more often than the flags describe.

    A rotated digit has its upright image twice, at 0 and at 360 degrees.
    """
    found = _count_duplicates(train.factors)
    expected = _count_duplicates(dataset.splits.train)
    if found > expected:
        yield (
            "duplicates",
            f"{found} training examples repeat another one, the flags "
            f"describe {expected}",
        )


def check_coverage(
    dataset: Dataset, train: Examples
) -> Iterator[tuple[str, str]]:
    """Every factor value that ID has occurs in training.

    Otherwise an OOD error may come from a value that was never seen, and is
    no failure to compose. A gap holds back values altogether, and says so.
    """
    space, splits = dataset.space, dataset.splits
    possible = space.to_index(splits.grid[splits.is_id])
    seen = space.to_index(train.factors)
    for column, factor in enumerate(space):
        missing = np.setdiff1d(possible[:, column], seen[:, column])
        if missing.size:
            values = factor.values()[missing]
            yield (
                "coverage",
                f"{missing.size} values of {factor.name} never occur in "
                f"training, the first is {values[0]:g}",
            )


def check_pixels(
    dataset: Dataset, split: str, examples: Examples
) -> Iterator[tuple[str, str]]:
    """Images are finite, from 0 to 1, not blank, and those of the factors."""
    images = examples.images
    if not np.isfinite(images).all():
        count = np.sum(~np.isfinite(images).all(axis=(1, 2, 3)))
        yield "pixels", f"{count} {split} images are not finite"
        return
    if images.size and (images.min() < 0 or images.max() > 1):
        low, high = images.min(), images.max()
        yield (
            "pixels",
            f"{split} pixels must be from 0 to 1, found {low:g} to {high:g}",
        )
    blank = np.ptp(images, axis=(1, 2, 3)) == 0
    if blank.any():
        yield (
            "pixels",
            f"{blank.sum()} {split} images are blank, the first is number "
            f"{np.flatnonzero(blank)[0]}",
        )
    if images.shape[1:] != dataset.image_shape:
        yield (
            "pixels",
            f"{split} images are {list(images.shape[1:])}, the flags "
            f"describe {list(dataset.image_shape)}",
        )
        return
    if len(images):
        yield from _compare_with_rendering(dataset, split, examples)


def summarize_pixels(examples: Examples) -> dict[str, float]:
    """Number of examples, and minimum, maximum, mean and spread of pixels."""
    images = examples.images
    if not images.size:
        return {"examples": len(images)}
    return {
        "examples": len(images),
        "min": float(images.min()),
        "max": float(images.max()),
        "mean": float(images.mean()),
        "std": float(images.std()),
    }


def _compare_with_rendering(
    dataset: Dataset, split: str, examples: Examples
) -> Iterator[tuple[str, str]]:
    truth = dataset.render_array(examples.factors)
    error = np.abs(examples.images - truth).max(axis=(1, 2, 3))
    wrong = np.flatnonzero(error > TOLERANCE)
    if wrong.size:
        yield (
            "pixels",
            f"{wrong.size} {split} images are not those of their factors, "
            f"the first is number {wrong[0]}, off by {error[wrong[0]]:.3g}",
        )


def _count_duplicates(factors: np.ndarray) -> int:
    rows: Any = {tuple(map(str, row)) for row in factors.tolist()}
    return len(factors) - len(rows)
