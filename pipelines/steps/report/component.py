"""report writes the reproduction report over the runs of this pipeline."""

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
        profile: The profile as JSON, which contains the hash of the sources.
        runs: The output of `trainer`.
        work_dir: A folder that outlives this run of the pipeline, or empty.
        folder: The report: page, tables and figures.
        page: The page alone, for the dashboard of a cluster.
        metrics: Number of claims for each verdict.
    """
    import shutil
    from collections import Counter
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.steps.report.executor import report_runs
    from pipelines.steps.running_step import run_step

    with run_step("report") as step:
        step.place(folder, work_dir, "report")
        written = report_runs(
            parse_profile(profile), Path(runs.path), Path(folder.path)
        )
        shutil.copyfile(written.page, page.path)
        counts = Counter(str(result.verdict) for result in written.results)
        step.log(metrics, {v.replace(" ", "_"): n for v, n in counts.items()})
        found = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        step.note = f"{found}: {written.page}"
