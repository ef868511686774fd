"""The pipeline and its steps, for the Kubeflow Pipelines SDK.

    example_gen -> example_validator -> trainer -> evaluator
        -> (blessed?) -> infra_validator -> pusher
                         trainer -> report

A candidate is *blessed* if the evaluator allows to push it. Steps pass files as
artifacts, which the SDK stores; the types `dsl.Output` and `dsl.Input` make
them arguments with a `path`.

The SDK copies the source of a component into a process of its own, so each
imports `pipelines.steps`, which does the work. `profile` is a
`pipelines.profile.Profile` as JSON: the sweeps to run, and the model to push.
`work_dir` is a folder that outlives this run of the pipeline, or empty.
Importing this module runs nothing and needs no cluster.
"""

import functools
from collections.abc import Callable

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
    from pipelines import steps

    steps.generate(profile, work_dir, examples)


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    anomalies: dsl.Output[dsl.Artifact],
):
    """Fails for leaks, wrong splits and wrong pixels, listed in a JSON file."""
    from pipelines import steps

    steps.validate_examples(profile, examples.path, anomalies.path)


@component()
def trainer(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    work_dir: str,
    workers: int,
    scheduler: str,
    runs: dsl.Output[dsl.Artifact],
):
    """Runs sweeps and searches: `logs/` and `saved_models/` in `runs`."""
    from pipelines import steps

    steps.train(profile, examples.path, work_dir, workers, scheduler, runs)


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

    Returns True if the candidate may be pushed. This is the only output, since
    locally a condition on one of several is always false.
    """
    from pipelines import steps

    return steps.evaluate(
        profile, runs.path, export_dir, work_dir, evaluation, metrics
    )


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
):
    """Calls the candidate with TensorFlow alone; a wrong image fails."""
    from pipelines import steps

    steps.validate_model(profile, runs.path, evaluation.path)


@component()
def pusher(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    export_dir: str,
    pushed: dsl.Output[dsl.Model],
):
    """Copies a new SavedModel to `<export_dir>/<name>/<next version>/`."""
    from pipelines import steps

    steps.push(profile, runs.path, evaluation.path, export_dir, pushed)


@component()
def report(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    work_dir: str,
    folder: dsl.Output[dsl.Artifact],
    page: dsl.Output[dsl.HTML],
):
    """Judges the paper's claims by the runs; dashboards show the `page`."""
    from pipelines import steps

    steps.report(profile, runs.path, work_dir, folder, page.path)


def make_pipeline(profile: str = "", base_image: str = BASE_IMAGE) -> Callable:
    """Makes the pipeline.

    Args:
        profile: The profile as JSON, the default of the parameter `profile`.
        base_image: The container image of all steps.

    Returns:
        A function that the SDK compiles or runs.
    """

    @dsl.pipeline(name="tfcomp", description="From examples to a pushed model.")
    def pipeline(
        profile: str = profile,
        export_dir: str = "saved_models",
        work_dir: str = "",
        workers: int = 0,
        scheduler: str = "",
    ):
        """Joins the steps; the validator and the thresholds can stop it."""
        generated = example_gen(profile=profile, work_dir=work_dir)
        examples = generated.outputs["examples"]

        validated = example_validator(profile=profile, examples=examples)

        trained = trainer(
            profile=profile,
            examples=examples,
            work_dir=work_dir,
            workers=workers,
            scheduler=scheduler,
        )
        trained.after(validated)
        runs = trained.outputs["runs"]

        evaluated = evaluator(
            profile=profile,
            runs=runs,
            export_dir=export_dir,
            work_dir=work_dir,
        )
        evaluation = evaluated.outputs["evaluation"]

        # The SDK records the comparison with True, and evaluates it later.
        with dsl.If(evaluated.outputs["Output"] == True, "blessed"):  # noqa: E712
            called = infra_validator(
                profile=profile, runs=runs, evaluation=evaluation
            )
            pushed = pusher(
                profile=profile,
                runs=runs,
                evaluation=evaluation,
                export_dir=export_dir,
            )
            pushed.after(called)

        reported = report(profile=profile, runs=runs, work_dir=work_dir)

        training = [generated, validated, trained, reported]
        release = [evaluated, called, pushed]
        _set_options(training + release, base_image)

    return pipeline


def _set_options(steps: list[dsl.PipelineTask], base_image: str) -> None:
    """Sets the image of steps, and turns the SDK's cache off.

    The cache compares only inputs. Steps also depend on datasets, finished
    trials and pushed models, which they look up themselves, so that they repeat
    no work.
    """
    for step in steps:
        step.set_caching_options(False)
        step.set_container_image(base_image)
