"""infra_validator asks the candidate's SavedModel without our code."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Sends requests to every signature; a wrong answer fails the step.

    Args:
        profile: The profile as JSON.
        runs: The output of `trainer`.
        evaluation: The output of `evaluator`, which names the candidate.
        metrics: Number of answers that were compared.
    """
    from pathlib import Path

    from pipelines.profile import check_profile, parse_profile
    from pipelines.steps.evaluator.candidates import find_candidate, find_model
    from pipelines.steps.running_step import run_step
    from tfcomp.config.quiet import start_tensorflow

    with run_step("infra_validator") as step:
        check_profile(parse_profile(profile))  # imports its plugins
        with start_tensorflow():
            from pipelines.steps.infra_validator.executor import validate_model

        run = find_candidate(Path(runs.path), Path(evaluation.path))
        count = validate_model(run, find_model(run))
        step.log(metrics, {"answers": count})
        step.note = f"{count} answers are those of the network"
