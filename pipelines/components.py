"""The steps of the pipeline, in TFX's words, for the Kubeflow Pipelines SDK.

The SDK copies the body of a component into a process of its own, so each
imports its module of `pipelines.steps`, which does the work. `profile` is the
profile as JSON; `work_dir` is a folder that outlives this run of the pipeline,
or empty.
"""

import functools

from kfp import dsl

# Built from `pipelines/Dockerfile`; `python -m pipelines.compile` can name
# another one. It has kfp and tfcomp: steps install nothing.
BASE_IMAGE = "tfcomp-python:latest"
component = functools.partial(
    dsl.component, base_image=BASE_IMAGE, install_kfp_package=False
)


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Writes TFDS datasets, each once for all trials that share it."""
    from pipelines.steps import example_gen

    example_gen.run(profile, work_dir, examples)


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    anomalies: dsl.Output[dsl.Artifact],
):
    """Fails for leaks, wrong splits and wrong pixels.

    `anomalies` is a JSON file, which is written even if the step fails.
    """
    from pipelines.steps import example_validator

    example_validator.run(profile, examples.path, anomalies.path)


@component()
def trainer(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Output[dsl.Artifact],
):
    """Runs the sweeps and searches; a trial that fails does not stop others.

    `runs` has run folders in `logs/` and SavedModels in `saved_models/`.
    `workers` trials run at a time (0: one for each GPU, or one), or those of
    the Dask cluster at the address `scheduler`.
    """
    from pipelines.steps import trainer

    trainer.run(profile, examples.path, work_dir, workers, scheduler, runs)


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
    from pipelines.steps import evaluator

    digest = examples.metadata.get("digest", "")
    return evaluator.run(
        profile, runs.path, export_dir, digest, work_dir, evaluation, metrics
    )


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
):
    """Queries every signature of the candidate; a wrong answer fails."""
    from tfcomp.config.quiet import start_tensorflow

    with start_tensorflow():
        from pipelines.steps import infra_validator

    infra_validator.run(profile, runs.path, evaluation.path)


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
    from pipelines.steps import pusher

    digest = examples.metadata.get("digest", "")
    pusher.run(profile, runs.path, evaluation.path, export_dir, digest, pushed)


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
    from pipelines.steps import report

    report.run(profile, runs.path, work_dir, folder, page.path)
