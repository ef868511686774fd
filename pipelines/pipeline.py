"""The pipeline: which step takes the outputs of which.

    example_gen -> schema_gen -> example_validator -> trainer -> evaluator
        -> (blessed?) -> infra_validator -> pusher
                                 trainer -> report

Importing this runs nothing and needs no cluster.
"""

from collections.abc import Callable

from kfp import dsl

from pipelines.components import (
    BASE_IMAGE,
    evaluator,
    example_gen,
    example_validator,
    infra_validator,
    pusher,
    report,
    schema_gen,
    trainer,
)

NAME = "tfcomp"
STEPS = (
    "example_gen",
    "schema_gen",
    "example_validator",
    "trainer",
    "evaluator",
    "infra_validator",
    "pusher",
    "report",
)


def make_pipeline(profile: str = "", base_image: str = BASE_IMAGE) -> Callable:
    """The pipeline as the SDK has it, to compile or to call.

    Args:
        profile: Default of the parameter `profile`, as JSON.
        base_image: Image of the steps, with tfcomp, its pipelines and kfp.
    """

    @dsl.pipeline(name=NAME, description="From examples to a pushed model.")
    def pipeline(
        profile: str = profile,
        export_dir: str = "saved_models",
        work_dir: str = "",
        workers: int = 0,
        scheduler: str = "",
    ):
        common = {"profile": profile, "work_dir": work_dir}
        generated = example_gen(**common)
        examples = generated.outputs["examples"]
        described = schema_gen(**common, examples=examples)
        validated = example_validator(
            profile=profile,
            examples=examples,
            schema=described.outputs["schema"],
        )
        trained = trainer(
            **common, examples=examples, workers=workers, scheduler=scheduler
        ).after(validated)
        runs = trained.outputs["runs"]
        evaluated = evaluator(**common, runs=runs, export_dir=export_dir)
        evaluation = evaluated.outputs["evaluation"]
        reported = report(**common, runs=runs)
        candidate = {"profile": profile, "runs": runs, "evaluation": evaluation}
        with dsl.If(evaluated.outputs["Output"] == True, "blessed"):  # noqa: E712
            asked = infra_validator(**candidate)
            pushed = pusher(
                **candidate, examples=examples, export_dir=export_dir
            ).after(asked)
        # These steps run every time, since the SDK's cache knows only their
        # inputs: they also look at data sets and trials that are finished, at
        # SavedModels and at what was pushed before. They make nothing twice.
        always = (generated, trained, evaluated, asked, pushed)
        for step in always:
            step.set_caching_options(False)
        for step in (*always, described, validated, reported):
            step.set_container_image(base_image)

    return pipeline
