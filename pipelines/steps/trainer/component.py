"""trainer runs the sweeps and the threshold searches of a profile."""

from kfp import dsl

from pipelines.steps.component_settings import component


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
        profile: The profile as JSON.
        examples: The output of `example_gen`.
        work_dir: A folder that outlives this run of the pipeline, in which
            finished trials are not run again; or empty.
        workers: Trials at a time; 0 is one for each GPU, or one.
        scheduler: Address of a Dask scheduler whose workers share the
            folders; empty starts workers here.
        runs: Run folders in `logs/`, SavedModels in `saved_models/`.
        metrics: Number of trials and of failures.
    """
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.running_step import run_step
    from pipelines.steps.step_events import count
    from pipelines.steps.trainer.executor import hash_tables, train_profile
    from tfcomp.sweeps.scheduler_options import SchedulerOptions

    with run_step("trainer") as step:
        step.place(runs, work_dir, "runs")
        folder = Path(runs.path)
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        with step.show_output():
            number, failures = train_profile(
                parse_profile(profile), examples.path, folder, options
            )
        # Steps that come after are skipped only if the tables are the same.
        runs.metadata["digest"] = hash_tables(folder)
        failed = len(failures)
        step.log(metrics, {"trials": number, "failed": failed})
        for failure in failures:
            step.say(f"failed: {failure}")
        step.note = f"{count(number, 'trial')}, {failed} failed, in {folder}"
