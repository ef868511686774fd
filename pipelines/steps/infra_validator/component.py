"""Asks the candidate's SavedModel in a process of TensorFlow alone."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Canary requests on every signature; a wrong answer fails the step.

    Args:
        profile: The profile as JSON.
        runs: What `trainer` wrote.
        evaluation: What `evaluator` wrote; it names the candidate.
        metrics: Number of answers that were compared.
    """
    from pathlib import Path

    from pipelines.steps.evaluator.executor import find_candidate
    from pipelines.steps.evaluator.executor import find_model
    from pipelines.steps.infra_validator.executor import validate_model
    from pipelines.steps.step_events import run_step
    from pipelines.steps.step_outputs import log_metrics

    with run_step("infra_validator") as step:
        run = find_candidate(Path(runs.path), Path(evaluation.path))
        count = validate_model(run, find_model(run))
        log_metrics(metrics, {"answers": count})
        step.note = f"{count} answers are those of the network"
