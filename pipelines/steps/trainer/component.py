"""Trains: the sweeps and the threshold searches of a profile."""

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
        examples: What `example_gen` wrote.
        work_dir: A folder that stays, in which trials that are finished are
            not run again; empty for none.
        workers: Trials at a time; 0 is one a GPU, or one.
        scheduler: Address of a Dask scheduler whose workers share the
            folders; empty starts workers here.
        runs: Run folders in `logs/`, SavedModels in `saved_models/`.
        metrics: Number of trials and of failures.
    """
    from pathlib import Path

    from pipelines.local.pipeline_progress import count
    from pipelines.profile import parse_profile
    from pipelines.steps.step_events import run_step
    from pipelines.steps.step_events import show_output
    from pipelines.steps.step_outputs import log_metrics
    from pipelines.steps.step_outputs import place
    from pipelines.steps.trainer.executor import train_profile
    from tfcomp.sweeps.scheduling import SchedulerOptions

    with run_step("trainer") as step:
        place(runs, work_dir, "runs")
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        with show_output(step):
            result = train_profile(
                parse_profile(profile),
                examples.path,
                Path(runs.path),
                options,
            )
        # Steps that come after are skipped only if these are the same.
        runs.metadata["digest"] = result.digest
        numbers = {"trials": result.num_trials, "failed": len(result.failures)}
        log_metrics(metrics, numbers)
        for failure in result.failures:
            step.say(f"failed: {failure}")
        step.note = (
            f"{count(result.num_trials, 'trial')}, "
            f"{len(result.failures)} failed, in {runs.path}"
        )
