"""example_validator: checks the data sets on disk, and corrects nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import run_step
from pipelines.step_events import count
from pipelines.steps.anomaly_checks import find_anomalies
from pipelines.steps.example_gen import list_datasets
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.datasets.materialized import Examples, load_split, select_settings
from tfcomp.storage.files import write_text


@dataclass(frozen=True)
class Anomaly:
    """What a check found wrong with a data set; each field is one line."""

    dataset: str
    check: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """What the validator found.

    Attributes:
        anomalies: What is wrong.
        statistics: By data set and split, the numbers of `summarize_pixels`.
    """

    anomalies: list[Anomaly]
    statistics: dict[str, dict[str, dict[str, float]]]

    def write(self, path: Path) -> None:
        """Writes `anomalies` and `statistics` as JSON."""
        write_text(path, json.dumps(asdict(self), indent=2) + "\n")

    def describe(self) -> str:
        """The first anomaly, and how many more there are."""
        first = self.anomalies[0]
        line = f"{first.check}: {first.reason} ({first.dataset})"
        more = len(self.anomalies) - 1
        return line + (f", and {more} more anomalies" if more else "")


def execute(
    profile: str,
    examples: dsl.Dataset,
    anomalies: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("example_validator") as step:
        datasets = list_datasets(parse_profile(profile))
        findings = validate_datasets(datasets, examples.path)
        findings.write(Path(anomalies.path))
        number = len(findings.anomalies)
        step.log(metrics, {"datasets": len(datasets), "anomalies": number})
        if findings.anomalies:
            raise RunError(findings.describe())
        step.note = f"no anomalies in {count(len(datasets), 'data set')}"


def validate_datasets(
    configs: Sequence[RunConfig], examples_dir: str | Path
) -> Findings:
    """Checks the data sets on disk, given one run for each of them."""
    findings = Findings([], {})
    for config in configs:
        name = describe_dataset(config)
        try:
            train, ood = load_splits(config, examples_dir)
        except RunError as error:
            findings.anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        findings.statistics[name] = {
            "train": summarize_pixels(train),
            "ood": summarize_pixels(ood),
        }
        found = find_anomalies(make_dataset(config), train, ood)
        findings.anomalies.extend(Anomaly(name, *pair) for pair in found)
    return findings


def describe_dataset(config: RunConfig) -> str:
    """A data set in one line, as `gaussian_bumps region=corner:14 ...`."""
    settings = select_settings(config)
    name = settings.pop("dataset")
    return " ".join([str(name), *(f"{k}={v}" for k, v in settings.items())])


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


def summarize_pixels(examples: Examples) -> dict[str, float]:
    """Number of examples, and minimum, maximum, mean and spread of pixels."""
    images = examples.images
    names = ("min", "max", "mean", "std") if images.size else ()
    numbers = {name: float(getattr(images, name)()) for name in names}
    return {"examples": len(images), **numbers}
