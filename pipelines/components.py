"""The interfaces of the steps, in TFX's words, for the Kubeflow Pipelines SDK.

The SDK copies the body of a component into a process of its own, so each
imports what it needs; the work is in `pipelines.steps`, one module a step.
`profile` is always the profile as JSON, and `work_dir` a folder that outlives
this run of the pipeline, or empty.
"""

import functools

from kfp import dsl

# Built from `pipelines/Dockerfile`; `python -m pipelines.compile` can name
# another one.
BASE_IMAGE = "tfcomp-python:latest"

# The image has kfp and tfcomp: nothing is installed when a step starts.
component = functools.partial(
    dsl.component, base_image=BASE_IMAGE, install_kfp_package=False
)


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Writes TFDS data sets, each once for all trials that share it.

    Args:
        examples: Parent folder of the data sets.
    """
    from pipelines.steps import example_gen

    example_gen.execute(profile, work_dir, examples)


@component()
def schema_gen(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    work_dir: str,
    schema: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Writes down what the examples are: their statistics and schema.

    Args:
        schema: A JSON file, by data set and split.
    """
    from pipelines.steps import schema_gen

    schema_gen.execute(profile, examples, work_dir, schema, metrics)


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    schema: dsl.Input[dsl.Artifact],
    anomalies: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Looks for leaks, wrong splits, duplicates, gaps and odd pixels.

    Args:
        profile: The profile, whose schema the examples must have, if any.
        anomalies: A JSON file of anomalies and statistics; it is written even
            when the step fails.
        metrics: Number of data sets and of anomalies.
    """
    from pipelines.steps import example_validator

    example_validator.execute(profile, examples, schema, anomalies, metrics)


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
    """Runs what is missing; a trial that fails does not stop the others.

    Args:
        work_dir: The folder that stays, in which finished trials are not run
            again.
        workers: Trials at a time; 0 is one for each GPU, or one.
        scheduler: Address of a Dask scheduler whose workers share the
            folders; empty starts workers here.
        runs: Run folders in `logs/`, SavedModels in `saved_models/`.
        metrics: Number of trials and of failures.
    """
    from pipelines.steps import trainer

    trainer.execute(
        profile, examples, work_dir, workers, scheduler, runs, metrics
    )


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
        evaluation: A JSON file of the candidate and the checks.
        metrics: The scores that were checked.

    Returns:
        Whether the candidate may be pushed. It is the only value, since a
        condition on one of several is always false on a single machine.
    """
    from pipelines.steps import evaluator

    return evaluator.execute(
        profile, runs, export_dir, work_dir, evaluation, metrics
    )


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
):
    """Sends requests to every signature; a wrong answer fails the step.

    Args:
        evaluation: The output of `evaluator`, which names the candidate.
        metrics: Number of answers that were compared.
    """
    from tfcomp.config.quiet import start_tensorflow

    with start_tensorflow():
        from pipelines.steps import infra_validator

    infra_validator.execute(profile, runs, evaluation, metrics)


@component()
def pusher(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    export_dir: str,
    pushed: dsl.Output[dsl.Model],
):
    """Copies the SavedModel to the next version, unless it is the last one.

    Args:
        examples: The output of `example_gen`, named in the lineage.
        evaluation: The output of `evaluator`, which names the candidate; a
            copy goes with the model.
        export_dir: Models go to `<export_dir>/<name>/<version>/`.
        pushed: The version that is the candidate.
    """
    from pipelines.steps import pusher

    pusher.execute(profile, examples, runs, evaluation, export_dir, pushed)


@component()
def report(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    work_dir: str,
    folder: dsl.Output[dsl.Artifact],
    page: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
):
    """Judges the paper's claims by the runs.

    Args:
        profile: The profile, which contains the hash of the sources.
        folder: The report: page, tables and figures.
        page: The page alone, for the dashboard of a cluster.
        metrics: Number of claims for each verdict.
    """
    from pipelines.steps import report

    report.execute(profile, runs, work_dir, folder, page, metrics)
