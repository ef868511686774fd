"""Asks the candidate's SavedModel in a process of TensorFlow alone."""

from kfp import dsl

from pipelines.components.component import component


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Canary requests on every signature; a wrong answer fails the step.

    Args:
        profile: The profile as JSON; it has the hash of the sources, so that
            the step is not skipped after they have changed.
        runs: What `trainer` wrote.
        evaluation: What `evaluator` wrote; it names the candidate.
        metrics: Number of answers that were compared.
    """
    from pathlib import Path

    from pipelines.evaluation import find_candidate
    from pipelines.evaluation import find_model
    from pipelines.infra import validate_model
    from pipelines.steps import run_step

    with run_step("infra_validator") as step:
        run = find_candidate(Path(runs.path), Path(evaluation.path))
        count = validate_model(run, find_model(run))
        metrics.log_metric("answers", count)
        step.note = f"{count} answers are those of the network"
