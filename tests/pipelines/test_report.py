"""The report of a pipeline on its own trials."""

import shutil
from pathlib import Path

from pipelines.profile import Profile, make_works
from pipelines.steps.report import report_runs
from tfcomp.config.run_config import RunConfig


def test_trials_of_other_flags_or_code_are_left_out(
    tiny_profile: Profile, smoke_run: RunConfig, tmp_path: Path
) -> None:
    logs = f"--log_dir={tmp_path / 'runs' / 'logs'}"
    (trial,) = make_works(tiny_profile, logs)[0].items
    stale = trial.path.with_name("0123456789abcdef")
    for folder in (trial.path, stale):
        folder.mkdir(parents=True)
        for name in ("run.flags", "metrics.json"):
            shutil.copy(Path(smoke_run.run_dir) / name, folder)
    text = (trial.path / "run.flags").read_text()
    (stale / "run.flags").write_text(text.replace("--seed=0", "--seed=1"))
    report_runs(tiny_profile.to_json(), tmp_path / "runs", tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert "used of 1 found" in page


def test_report_of_nothing(tiny_profile: Profile, tmp_path: Path) -> None:
    profile = tiny_profile.to_json()
    report = report_runs(profile, tmp_path / "runs", tmp_path / "report")
    verdicts = [str(result.verdict) for result in report.results]
    assert verdicts == ["not run"] * 22
