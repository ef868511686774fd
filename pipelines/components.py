"""The steps of the pipeline, in TFX's words, for the Kubeflow Pipelines SDK.

The SDK copies the body of a component into a process of its own, so each
imports what it needs. A body reads and writes artifacts; functions of
`pipelines.steps` and tfcomp do the work on paths. `profile` is the profile as
JSON; `work_dir` is a folder that outlives this run of the pipeline, or empty.
"""

import functools
from typing import Any

from kfp import dsl

# Built from `pipelines/Dockerfile`; `python -m pipelines.compile` can name
# another one. It has kfp and tfcomp: steps install nothing.
BASE_IMAGE = "tfcomp-python:latest"
component = functools.partial(
    dsl.component, base_image=BASE_IMAGE, install_kfp_package=False
)


def list_outputs() -> dict[str, Any]:
    """Returns the kind of every artifact that a step writes, by name."""
    plain = ("anomalies", "runs", "evaluation", "folder")
    return dict.fromkeys(plain, dsl.Artifact) | {
        "examples": dsl.Dataset,
        "metrics": dsl.Metrics,
        "pushed": dsl.Model,
        "page": dsl.HTML,
    }


@component()
def example_gen(profile: str, work_dir: str, examples: dsl.Output[dsl.Dataset]):
    """Writes TFDS datasets, each once for all trials that share it."""
    from pipelines.running_step import count, place, run_step
    from pipelines.steps.example_gen import write_examples

    with run_step("example_gen") as step:
        folder = place(examples, work_dir, "examples")
        number, digest = write_examples(profile, folder)
        # The SDK skips the validator only for these very files.
        examples.metadata |= {"datasets": number, "digest": digest}
        step.note = f"{count(number, 'dataset')} in {folder}"


@component()
def example_validator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    anomalies: dsl.Output[dsl.Artifact],
):
    """Fails for leaks, wrong splits, missing values and wrong pixels.

    `anomalies` is a JSON file, which is written even if the step fails.
    """
    from pipelines.running_step import count, run_step
    from pipelines.steps.example_validator import validate_examples

    with run_step("example_validator") as step:
        number = validate_examples(profile, examples.path, anomalies.path)
        step.note = f"no anomalies in {count(number, 'dataset')}"


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
    """Runs the sweeps and searches; a trial that fails does not stop others.

    `runs` has run folders in `logs/` and SavedModels in `saved_models/`.
    `workers` trials run at a time (0: one for each GPU, or one), or those of
    the Dask cluster at the address `scheduler`.
    """
    from pipelines.running_step import count, place, run_step
    from pipelines.steps.trainer import hash_tables, train_all
    from tfcomp.sweeps.scheduler_options import SchedulerOptions

    with run_step("trainer") as step:
        folder = place(runs, work_dir, "runs")
        options = SchedulerOptions(workers=workers, scheduler=scheduler)
        number, failed = train_all(profile, folder, examples.path, options)
        # The SDK skips the report only for the same tables.
        runs.metadata["digest"] = hash_tables(folder)
        metrics.log_metric("trials", number)
        metrics.log_metric("failed", failed)
        step.note = f"{count(number, 'trial')}, {failed} failed, in {folder}"


@component()
def evaluator(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    runs: dsl.Input[dsl.Artifact],
    export_dir: str,
    work_dir: str,
    evaluation: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
) -> bool:
    """Compares scores with thresholds and with the model pushed before.

    `evaluation` is a JSON file with the candidate and all checks. Returns
    True if the candidate may be pushed. This is the only output, since
    locally a condition on one of several is always false.
    """
    import json
    from pathlib import Path

    from pipelines.profile import parse_profile
    from pipelines.running_step import place, run_step
    from pipelines.steps.evaluator import judge_candidate
    from tfcomp.storage.files import write_text

    with run_step("evaluator") as step:
        file = place(evaluation, work_dir, "evaluation.json")
        verdict = judge_candidate(
            parse_profile(profile).rules,
            Path(runs.path),
            export_dir,
            examples.metadata.get("digest", ""),
        )
        write_text(file, json.dumps(verdict.to_dict(), indent=2) + "\n")
        evaluation.metadata["candidate"] = verdict.run
        for check in verdict.checks:
            if check.value is not None:
                metrics.log_metric(check.score, check.value)
        step.note, step.is_stopped = verdict.describe(), not verdict.blessed
        return verdict.blessed


@component()
def infra_validator(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
):
    """Queries every signature of the candidate; a wrong answer fails."""
    from pipelines.running_step import run_step
    from pipelines.steps.trainer import find_candidate
    from tfcomp.config.quiet import start_tensorflow

    with start_tensorflow():
        from pipelines.steps.infra_validator import validate_model

    with run_step("infra_validator") as step:
        run = find_candidate(runs.path, evaluation.path)
        number = validate_model(profile, run)
        step.note = f"{number} answers equal the network's"


@component()
def pusher(
    profile: str,
    examples: dsl.Input[dsl.Dataset],
    runs: dsl.Input[dsl.Artifact],
    evaluation: dsl.Input[dsl.Artifact],
    export_dir: str,
    pushed: dsl.Output[dsl.Model],
):
    """Copies the SavedModel to `<export_dir>/<name>/<next version>/`.

    A model that is the last version already is not copied again. The
    evaluation and the lineage go with it.
    """
    from pathlib import Path

    from pipelines.running_step import run_step
    from pipelines.steps.pusher import push_candidate

    with run_step("pusher") as step:
        version, is_new = push_candidate(
            profile,
            Path(runs.path),
            Path(evaluation.path),
            export_dir,
            examples.metadata.get("digest", ""),
        )
        pushed.uri, pushed.metadata["version"] = str(version), version.name
        word = "pushed" if is_new else "nothing new, the model is"
        step.note = f"{word} {version}"


@component()
def report(
    profile: str,
    runs: dsl.Input[dsl.Artifact],
    work_dir: str,
    folder: dsl.Output[dsl.Artifact],
    page: dsl.Output[dsl.HTML],
):
    """Judges the paper's claims by the runs.

    `folder` has page, tables and figures; `page` is the page alone, for the
    dashboard of a cluster.
    """
    import shutil
    from collections import Counter
    from pathlib import Path

    from pipelines.running_step import place, run_step
    from pipelines.steps.report import report_runs

    with run_step("report") as step:
        output = place(folder, work_dir, "report")
        written = report_runs(profile, Path(runs.path), output)
        shutil.copyfile(written.page, page.path)
        counts = Counter(result.word for result in written.results)
        verdicts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        step.note = f"{verdicts}: {written.page}"
