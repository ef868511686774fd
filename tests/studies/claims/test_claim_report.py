"""The reproduction report: self-contained, complete, in agreement."""

import base64
import csv
import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studies.claims.planted import plant_all_claims
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.studies.claims import write_report
from tfcomp.studies.claims.command import main
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.result_text import format_number

COMMAND = "python -m a.command --runs='logs/*' <and> more"
MAX_BYTES = 3_000_000


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims") / "new" / "folder"
    return write_report(plant_all_claims(), folder, COMMAND)


@pytest.fixture(scope="module")
def page(report) -> str:
    return report.page.read_text("utf-8")


def test_page_is_self_contained(report, page: str) -> None:
    assert not re.search("<(link|iframe)|<script[^>]", page)
    links = re.findall('(?:src|href)="([^"]*)"', page)
    pictures = [x for x in links if x.startswith("data:image/png;base64,")]
    assert len(pictures) == 1
    for picture in pictures:
        png = base64.b64decode(picture.partition(",")[2])
        assert png.startswith(b"\x89PNG")
    others = {x for x in links if x not in pictures}
    anchors = {x[1:] for x in others if x.startswith("#")}
    ids = re.findall(' id="([^"]*)"', page)
    assert anchors <= set(ids) and len(set(ids)) == len(ids)
    files = {x for x in others if not x.startswith("#")}
    assert all((report.page.parent / name).is_file() for name in files)
    assert "http" not in page.replace("http-equiv", "")
    assert "viewport" in page
    assert len(page) < MAX_BYTES


def test_page_shows_every_claim_and_number(report, page: str) -> None:
    assert all(f'id="C{number}"' in page for number in range(1, 23))
    text = html.unescape(re.sub("<[^>]*>", " ", page))
    for result in report.results:
        assert (result.claim.stricter or result.claim.statement) in text
        for part in result.parts:
            assert part.quantity in text
            if part.estimate is not None:
                assert format_number(part.estimate.mean) in text
    assert COMMAND in text  # escaped in the source
    assert "<and>" not in page
    assert "a note" in text


def test_tables_agree_with_the_verdicts(report) -> None:
    folder = report.page.parent
    with open(folder / "claims.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["test"] for row in rows].count("ours") == sum(
        len(r.parts) for r in report.results
    )
    words = {r.claim.name: r.word for r in report.results}
    assert {row["claim"]: row["claim_verdict"] for row in rows} == words
    markdown = (folder / "report.md").read_text("utf-8").splitlines()
    table = [line for line in markdown if line.startswith("| **C")]
    for line, result in zip(table, report.results, strict=True):
        assert f"**{result.claim.name}**" in line
        assert f"**{result.badge}**" in line
        assert line.replace("\\|", "").count("|") == 6


def test_controls_and_history_are_shown(report, page: str) -> None:
    folder = report.page.parent
    _, _, *lines = (folder / "controls.md").read_text("utf-8").splitlines()
    for line, result in zip(lines, report.results, strict=True):
        cells = line.strip("| ").replace("\\|", "").split(" | ")
        kinds = [str(c.kind) for c in result.controls]
        count = kinds.count("positive")
        assert len(cells) == 6 and cells[2] == f"{count} of {count}"
    history = (folder / "history.md").read_text("utf-8")
    text = html.unescape(re.sub("<[^>]*>", " ", page))
    for result in report.results:
        assert result.claim.rule in text
        assert all(control.name in text for control in result.controls)
        rows = len(result.claim.history) + 1
        assert history.count(f"| {result.claim.name} |") == rows
        assert all(row["rule"] in text for row in result.claim.history)


def test_the_picture_is_saved(report) -> None:
    (picture,) = (report.page.parent / "figures").iterdir()
    assert picture.name == "verdicts.png"
    assert picture.stat().st_size < 300_000


def test_report_without_evidence(tmp_path: Path) -> None:
    report = write_report(Evidence(), tmp_path)
    assert all(r.verdict == "not run" for r in report.results)
    assert "22 not run" in report.page.read_text("utf-8")
    table = (tmp_path / "verdicts.md").read_text()
    _, _, *lines = table.splitlines()
    assert all("| **not run**" in line for line in lines) and len(lines) == 22


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="--output must be writable"):
        write_report(Evidence(), tmp_path / "file" / "report")


def test_no_tensorflow() -> None:
    script = (
        "import sys, tfcomp.studies.claims\n"
        "assert not {'tensorflow', 'keras', 'sklearn'} & set(sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_command_over_a_run(
    smoke_run: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    output = tmp_path / "report"
    arguments = [f"--runs={smoke_run.run_dir}", f"--output={output}"]
    assert main(["", *arguments]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\nC") == 22 and f"{output}/report.html" in printed
    assert (output / "report.md").exists() and (output / "claims.csv").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runs=nix*"], "--runs must match a folder, got 'nix"),
        (["--runs=.", "--output="], "--output must name a folder, got ''"),
        (["--runs=/etc/passwd"], "must match finished runs or"),
    ],
)
@pytest.mark.usefixtures("working_folder")
def test_mistakes(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        main(["", *flags])
    assert not Path("report").exists()
