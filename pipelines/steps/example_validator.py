"""example_validator: checks the data sets on disk, and corrects nothing."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kfp import dsl

from pipelines.profile import parse_profile
from pipelines.running_step import count, run_step
from pipelines.steps.anomaly_checks import find_anomalies
from pipelines.steps.example_gen import (
    describe_dataset,
    list_datasets,
    load_splits,
)
from pipelines.steps.schema_gen import compare_schemas
from tfcomp.config.errors import RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import make_dataset
from tfcomp.storage.files import read_json, write_text


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
    """

    anomalies: list[Anomaly]

    def write(self, path: Path) -> None:
        """Writes `anomalies` as JSON."""
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
    schema: dsl.Artifact,
    anomalies: dsl.Artifact,
    metrics: dsl.Metrics,
) -> None:
    """Does the work of the step; see `pipelines.components`."""
    with run_step("example_validator") as step:
        parsed = parse_profile(profile)
        datasets = list_datasets(parsed)
        findings = validate_datasets(datasets, examples.path)
        if parsed.schema:
            found = read_json(Path(schema.path))
            for name, reason in compare_schemas(parsed.schema, found):
                findings.anomalies.append(Anomaly(name, "schema", reason))
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
    findings = Findings([])
    for config in configs:
        name = describe_dataset(config)
        try:
            train, ood = load_splits(config, examples_dir)
        except RunError as error:
            findings.anomalies.append(Anomaly(name, "readable", str(error)))
            continue
        found = find_anomalies(make_dataset(config), train, ood)
        findings.anomalies.extend(Anomaly(name, *pair) for pair in found)
    return findings
