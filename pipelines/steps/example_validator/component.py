"""example_validator checks the data sets; an anomaly fails the step."""

from kfp import dsl

from pipelines.steps.component_settings import component


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
        examples: The output of `example_gen`.
        anomalies: A JSON file of anomalies and statistics; it is written even
            when the step fails.
        metrics: Number of data sets and of anomalies.
    """
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.example_gen.executor import list_datasets
    from pipelines.steps.example_validator.executor import validate_datasets
    from pipelines.steps.running_step import run_step
    from pipelines.steps.step_events import count
    from tfcomp.config.errors import RunError

    with run_step("example_validator") as step:
        datasets = list_datasets(parse_profile(profile))
        findings = validate_datasets(datasets, examples.path)
        findings.write(Path(anomalies.path))
        number = len(findings.anomalies)
        step.log(metrics, {"datasets": len(datasets), "anomalies": number})
        if findings.anomalies:
            raise RunError(findings.describe())
        step.note = f"no anomalies in {count(len(datasets), 'data set')}"
