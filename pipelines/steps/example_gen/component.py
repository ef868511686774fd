"""example_gen writes the data sets that the trials of a profile train on."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Writes TFDS data sets, each once for all trials that share it.

    Args:
        profile: The profile as JSON.
        work_dir: A folder that outlives this run of the pipeline, or empty.
        examples: Parent folder of the data sets.
    """
    from pipelines.profile import parse_profile
    from pipelines.steps.example_gen.executor import (
        hash_examples,
        list_datasets,
    )
    from pipelines.steps.running_step import run_step
    from pipelines.steps.step_events import count
    from tfcomp.datasets.materialized import materialize

    with run_step("example_gen") as step:
        step.place(examples, work_dir, "examples")
        configs = list_datasets(parse_profile(profile))
        folders = [materialize(config, examples.path) for config in configs]
        examples.metadata["datasets"] = len(folders)
        # The validator is skipped only if it has seen these very files.
        examples.metadata["digest"] = hash_examples(folders)
        step.note = f"{count(len(folders), 'data set')} in {examples.path}"
