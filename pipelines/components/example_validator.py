"""Checks the data sets; an anomaly fails the step."""

from kfp import dsl

from pipelines.components.component import component


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    anomalies: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Looks for leaks, wrong splits, duplicates, gaps and odd pixels.

    Args:
        profile: The profile as JSON.
        examples: What `example_gen` wrote.
        anomalies: A JSON file of anomalies and statistics; written even
            when the step fails.
        metrics: Number of data sets and of anomalies.
    """
    from pathlib import Path

    from pipelines.examples import list_datasets
    from pipelines.profile import parse_profile
    from pipelines.progress import count
    from pipelines.steps import run_step
    from pipelines.validation import validate_datasets
    from tfcomp.errors import RunError

    with run_step("example_validator") as step:
        datasets = list_datasets(parse_profile(profile))
        findings = validate_datasets(datasets, examples.path)
        findings.write(Path(anomalies.path))
        metrics.log_metric("datasets", len(datasets))
        metrics.log_metric("anomalies", len(findings.anomalies))
        if findings.anomalies:
            raise RunError(findings.describe())
        step.note = f"no anomalies in {count(len(datasets), 'data set')}"
