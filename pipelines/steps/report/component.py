"""Writes the reproduction report over the runs of this pipeline."""

from kfp import dsl

from pipelines.steps.component_settings import component


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
        profile: The profile as JSON; it has the hash of the sources.
        runs: What `trainer` wrote.
        work_dir: A folder that stays, to write to; empty for none.
        folder: The report: page, tables and figures.
        page: The page alone, to be shown.
        metrics: Number of claims for each verdict.
    """
    import shutil
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.report.executor import count_verdicts
    from pipelines.steps.report.executor import report_runs
    from pipelines.steps.step_events import run_step
    from pipelines.steps.step_outputs import log_metrics
    from pipelines.steps.step_outputs import place

    with run_step("report") as step:
        place(folder, work_dir, "report")
        written = report_runs(
            parse_profile(profile), Path(runs.path), Path(folder.path)
        )
        shutil.copyfile(written.page, page.path)
        counts = count_verdicts(written)
        numbers = {v.replace(" ", "_"): n for v, n in counts.items()}
        log_metrics(metrics, numbers)
        found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        step.note = f"{found}: {written.page}"
