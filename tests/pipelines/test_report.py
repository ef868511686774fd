"""The reproduction report, by its command and by its step."""

import shutil
from pathlib import Path

import pytest

from pipelines.profile import Profile, make_sweeps
from pipelines.steps.report import report_runs
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.studies.claims.command import main


def test_report_over_a_run(
    smoke_run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    output = tmp_path / "report"
    status = main(["", f"--runs={smoke_run.run_dir}", f"--output={output}"])
    assert status == 0
    printed = capsys.readouterr().out
    assert printed.count("\nC") == 22 and f"{output}/report.html" in printed
    page = (output / "report.html").read_text()
    assert "tfcomp study claims" in page
    assert (output / "report.md").exists() and (output / "claims.csv").exists()


def test_trials_of_other_flags_or_code_are_left_out(
    tiny_profile: Profile, smoke_run: RunConfig, tmp_path: Path
) -> None:
    logs = f"--log_dir={tmp_path / 'runs' / 'logs'}"
    (trial,) = make_sweeps(tiny_profile, logs)[0].items
    stale = trial.path.with_name("0123456789abcdef")
    for folder in (trial.path, stale):
        folder.mkdir(parents=True)
        for name in ("run.flags", "metrics.json"):
            shutil.copy(Path(smoke_run.run_dir) / name, folder)
    text = (trial.path / "run.flags").read_text()
    (stale / "run.flags").write_text(text.replace("--seed=0", "--seed=1"))
    report_runs(tiny_profile, tmp_path / "runs", tmp_path / "report")
    page = (tmp_path / "report" / "report.md").read_text()
    assert "used of 1 found" in page


def test_report_of_nothing(tiny_profile: Profile, tmp_path: Path) -> None:
    report = report_runs(tiny_profile, tmp_path / "runs", tmp_path / "report")
    verdicts = [str(result.verdict) for result in report.results]
    assert verdicts == ["not run"] * 22


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=nix*"], "--runs must match a folder, got 'nix"),
        ([], "--runs must name run folders"),
        (["--runs=.", "--output="], "--output must name a folder, got ''"),
        (["--runs=/etc/passwd"], "must match finished runs or"),
        (["--runs=empty"], "must match finished runs or"),
    ],
)
def test_mistakes(flags: list[str], message: str, working_folder: Path) -> None:
    (working_folder / "empty").mkdir()
    with pytest.raises(ConfigError, match=message):
        main(["", *flags])
    assert not Path("report").exists()
