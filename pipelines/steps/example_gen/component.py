"""Writes the data sets that the trials of a profile train on."""

from kfp import dsl

from pipelines.steps.component_settings import component


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Materializes TFDS data sets.

    Args:
        profile: The profile as JSON.
        work_dir: A folder that stays, to write to; empty for none.
        examples: Parent of the data sets.
    """
    from pathlib import Path

    from pipelines.local.pipeline_progress import count
    from pipelines.profile import parse_profile
    from pipelines.steps.example_gen.executor import hash_examples
    from pipelines.steps.example_gen.executor import write_examples
    from pipelines.steps.step_events import run_step
    from pipelines.steps.step_outputs import place

    with run_step("example_gen") as step:
        place(examples, work_dir, "examples")
        folders = write_examples(parse_profile(profile), Path(examples.path))
        examples.metadata["datasets"] = len(folders)
        # The validator is skipped only if it has seen these very files.
        examples.metadata["digest"] = hash_examples(folders)
        step.note = f"{count(len(folders), 'data set')} in {examples.path}"
