"""The pipeline: the steps and their order.

    example_gen -> example_validator -> trainer -> evaluator
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
    trainer,
)

NAME = "tfcomp"


def make_pipeline(profile: str = "", base_image: str = BASE_IMAGE) -> Callable:
    """Makes the pipeline, to compile or to call.

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
        validated = example_validator(profile=profile, examples=examples)
        trained = trainer(
            **common, examples=examples, workers=workers, scheduler=scheduler
        ).after(validated)
        runs = trained.outputs["runs"]
        evaluated = evaluator(
            **common, examples=examples, runs=runs, export_dir=export_dir
        )
        reported = report(**common, runs=runs)
        candidate = {
            "profile": profile,
            "runs": runs,
            "evaluation": evaluated.outputs["evaluation"],
        }
        with dsl.If(evaluated.outputs["Output"] == True, "blessed"):  # noqa: E712
            queried = infra_validator(**candidate)
            pushed = pusher(
                **candidate, examples=examples, export_dir=export_dir
            ).after(queried)
        # The SDK's cache compares inputs alone. Steps also look at datasets,
        # finished trials and pushed models, and repeat no work.
        for step in (
            generated,
            validated,
            trained,
            evaluated,
            queried,
            pushed,
            reported,
        ):
            step.set_caching_options(False)
            step.set_container_image(base_image)

    return pipeline
