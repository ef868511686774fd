"""Pushes the candidate to where models are served from."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def pusher(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    export_dir: str,
    pushed: dsl.Output[dsl.Model],
):
    """Copies the SavedModel to the next version, unless it is the last one.

    Args:
        profile: The profile as JSON.
        runs: What `trainer` wrote.
        evaluation: What `evaluator` wrote; it names the candidate, and goes
            with the model.
        export_dir: Models go to `<export_dir>/<name>/<version>/`.
        pushed: The version that has the model.
    """
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.evaluator.executor import find_candidate
    from pipelines.steps.evaluator.executor import find_model
    from pipelines.steps.pusher.executor import push_model
    from pipelines.steps.step_events import run_step

    with run_step("pusher") as step:
        name = parse_profile(profile).rules.push_as
        push = push_model(
            find_model(find_candidate(Path(runs.path), Path(evaluation.path))),
            Path(export_dir, name),
            Path(evaluation.path),
        )
        pushed.uri = str(push.version)
        pushed.metadata["version"] = push.version.name
        word = "pushed" if push.is_new else "nothing new, the model is"
        step.note = f"{word} {push.version}"
