"""The steps of the pipeline, in TFX's words, for the Kubeflow Pipelines SDK.

The SDK copies the body of a component into a process of its own, so each
imports what it needs. The work is done by functions of `pipelines.steps` and
tfcomp. `profile` is the profile as JSON; `work_dir` is a folder that outlives
this run of the pipeline, or empty.
"""

import functools
from typing import Any

from kfp import dsl

# Built from `pipelines/Dockerfile`; `python -m pipelines.compile` can name
# another one. It has kfp and tfcomp: steps install nothing.
BASE_IMAGE = "tfcomp-python:latest"
component = functools.partial(
    dsl.component, base_image=BASE_IMAGE, install_kfp_package=False
)


def list_outputs() -> dict[str, Any]:
    """Returns the kind of every artifact that a step writes, by name."""
    plain = ("anomalies", "runs", "evaluation", "folder")
    return dict.fromkeys(plain, dsl.Artifact) | {
        "examples": dsl.Dataset,
        "metrics": dsl.Metrics,
        "pushed": dsl.Model,
        "page": dsl.HTML,
    }


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Writes TFDS datasets, each once for all trials that share it."""
    from pipelines.running_step import run_step
    from pipelines.steps.example_gen import write_examples

    with run_step("example_gen") as step:
        step.place(examples, work_dir, "examples")
        write_examples(step, profile, examples)


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    anomalies: dsl.Output[dsl.Artifact],
):
    """Fails for leaks, wrong splits, values that never occur, wrong pixels.

    `anomalies` is a JSON file, which is written even if the step fails.
    """
    from pipelines.running_step import run_step
    from pipelines.steps.example_validator import validate_examples

    with run_step("example_validator") as step:
        validate_examples(step, profile, examples, anomalies)


@component()
def trainer(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Runs the sweeps and searches; a trial that fails does not stop others.

    `runs` has run folders in `logs/` and SavedModels in `saved_models/`.
    `workers` trials run at a time (0: one for each GPU, or one), or those of
    the Dask cluster at the address `scheduler`.
    """
    from pipelines.running_step import run_step
    from pipelines.steps.trainer import train_all

    with run_step("trainer") as step:
        step.place(runs, work_dir, "runs")
        train_all(step, profile, examples, workers, scheduler, runs, metrics)


@component()
def evaluator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    runs: dsl.Input[dsl.Artifact],
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
) -> bool:
    """Compares scores with thresholds and with the model pushed before.

    `evaluation` is a JSON file with the candidate and all checks. Returns
    True if the candidate may be pushed. This is the only output, since
    locally a condition on one of several is always false.
    """
    from pipelines.running_step import run_step
    from pipelines.steps.evaluator import judge_candidate

    with run_step("evaluator") as step:
        step.place(evaluation, work_dir, "evaluation.json")
        return judge_candidate(
            step, profile, examples, runs, export_dir, evaluation, metrics
        )


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
):
    """Queries every signature of the candidate; a wrong answer fails."""
    from pipelines.running_step import run_step
    from tfcomp.config.quiet import start_tensorflow

    with start_tensorflow():
        from pipelines.steps.infra_validator import validate_model

    with run_step("infra_validator") as step:
        validate_model(step, profile, runs, evaluation)


@component()
def pusher(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    export_dir: str,
    pushed: dsl.Output[dsl.Model],
):
    """Copies the SavedModel to `<export_dir>/<name>/<next version>/`.

    A model that is the last version already is not copied again. The
    evaluation and the lineage go with it.
    """
    from pipelines.running_step import run_step
    from pipelines.steps.pusher import push_candidate

    with run_step("pusher") as step:
        push_candidate(
            step, profile, examples, runs, evaluation, export_dir, pushed
        )


@component()
def report(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    work_dir: str,
    folder: dsl.Output[dsl.Artifact],
    page: dsl.Output[dsl.HTML],
):
    """Judges the paper's claims by the runs.

    `folder` has page, tables and figures; `page` is the page alone, for the
    dashboard of a cluster.
    """
    from pipelines.running_step import run_step
    from pipelines.steps.report import judge_runs

    with run_step("report") as step:
        step.place(folder, work_dir, "report")
        judge_runs(step, profile, runs, folder, page)
