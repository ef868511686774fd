"""The command of the reproduction report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.reproduce import main
from tfcomp.config import RunConfig
from tfcomp.errors import ConfigError


def test_report_over_a_run(
    smoke_run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    output = tmp_path / "report"
    status = main(["", f"--runs={smoke_run.run_dir}", f"--output={output}"])
    assert status == 0
    printed = capsys.readouterr().out
    assert printed.count("\nC") == 19 and f"{output}/report.html" in printed
    page = (output / "report.html").read_text()
    assert "python -m pipelines.reproduce" in page
    assert (output / "report.md").exists() and (output / "claims.csv").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=nix*"], "--runs must match a folder, got 'nix"),
        ([], "--runs must name run folders"),
        (["--runs=.", "--output="], "--output must name a folder, got ''"),
    ],
)
def test_mistakes(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("*", "")):
        main(["", *flags])
