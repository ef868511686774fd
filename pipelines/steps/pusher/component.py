"""pusher copies the candidate to where models are served from."""

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
        runs: The output of `trainer`.
        evaluation: The output of `evaluator`, which names the candidate; a
            copy goes with the model.
        export_dir: Models go to `<export_dir>/<name>/<version>/`.
        pushed: The version that is the candidate.
    """
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.evaluator.candidates import find_candidate, find_model
    from pipelines.steps.pusher.executor import push_model
    from pipelines.steps.running_step import run_step

    with run_step("pusher") as step:
        evidence = Path(evaluation.path)
        model = find_model(find_candidate(Path(runs.path), evidence))
        folder = Path(export_dir, parse_profile(profile).rules.push_as)
        version, is_new = push_model(model, folder, evidence)
        pushed.uri = str(version)
        pushed.metadata["version"] = version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"
