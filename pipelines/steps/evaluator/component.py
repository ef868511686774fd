"""evaluator chooses a candidate and blesses it, or not."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def evaluator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
) -> bool:
    """Compares scores with thresholds and with the model pushed before.

    Args:
        profile: The profile as JSON.
        runs: The output of `trainer`.
        export_dir: Where models are pushed to.
        work_dir: A folder that outlives this run of the pipeline, or empty.
        evaluation: A JSON file of the candidate and the checks.
        metrics: The scores that were checked.

    Returns:
        Whether the candidate may be pushed. It is the only value, since a
        condition on one of several is always false on a single machine.
    """
    from pathlib import Path

    from pipelines.profile import check_profile, parse_profile
    from pipelines.steps.evaluator.executor import evaluate_sweep
    from pipelines.steps.running_step import run_step

    with run_step("evaluator") as step:
        parsed = parse_profile(profile)
        check_profile(parsed)  # imports its plugins
        rules = parsed.rules
        pushed = Path(export_dir, rules.push_as)
        verdict = evaluate_sweep(Path(runs.path), rules, pushed)
        step.place(evaluation, work_dir, "evaluation.json")
        verdict.write(Path(evaluation.path))
        evaluation.metadata["candidate"] = verdict.run
        step.log(metrics, verdict.list_numbers())
        step.note = verdict.describe()
        if not verdict.blessed:
            step.stop = step.note
        return verdict.blessed
