"""Chooses a candidate and blesses it, or not."""

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
        runs: What `trainer` wrote.
        export_dir: Where models are pushed to.
        work_dir: A folder that stays, to write to; empty for none.
        evaluation: A JSON file of the candidate and the checks.
        metrics: The scores that were checked.

    Returns:
        Whether the candidate may be pushed. It is the only value: a
        condition on one of several is always false on a single machine.
    """
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.evaluator.executor import evaluate_sweep
    from pipelines.steps.step_events import run_step
    from pipelines.steps.step_outputs import log_metrics
    from pipelines.steps.step_outputs import place

    with run_step("evaluator") as step:
        rules = parse_profile(profile).rules
        verdict = evaluate_sweep(
            Path(runs.path), rules, Path(export_dir, rules.push_as)
        )
        place(evaluation, work_dir, "evaluation.json")
        verdict.write(Path(evaluation.path))
        evaluation.metadata["candidate"] = verdict.run
        log_metrics(metrics, verdict.list_numbers())
        step.note = verdict.describe()
        if not verdict.blessed:
            step.stop = step.note
        return verdict.blessed
