"""The page and the table of claims are those of the committed evidence."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.claims import Evidence, read_evidence, write_report
from reproduction.claims.command import main
from tfcomp.config.errors import ConfigError

ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "reproduction" / "evidence"
COMMAND = """
import sys, time
from reproduction.claims.command import main
assert main(sys.argv) == 0 and "tensorflow" not in sys.modules
"""


def test_the_pages_are_those_of_the_evidence(tmp_path: Path) -> None:
    flags = [f"--runs={EVIDENCE}", f"--output={tmp_path}"]
    command = [sys.executable, "-c", COMMAND, *flags]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE)
    page = (tmp_path / "results.md").read_text("utf-8")
    assert page == (ROOT / "docs/results.md").read_text("utf-8")
    table = (tmp_path / "claims.csv").read_text("utf-8")
    assert table == (ROOT / "docs/tables/claims.csv").read_text("utf-8")
    assert len(page.splitlines()) <= 150
    assert "{" not in page
    for row in re.findall(r"^\|.*\|$", page, re.MULTILINE):
        cells = row.replace("\\|", "¦").strip("|").split("|")
        assert len(cells) == 7
        assert max(len(cell.strip()) for cell in cells) <= 60


def test_without_evidence_all_is_open(tmp_path: Path) -> None:
    rows = write_report(Evidence(), tmp_path)
    assert {row.holds for row in rows} <= {"open", "-"}
    assert {row.claim for row in rows} == {f"C{n}" for n in range(1, 24)} - {
        "C16"
    }
    with pytest.raises(ConfigError):
        read_evidence([str(tmp_path / "nothing")])


def test_nothing_is_written_without_runs(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    output = tmp_path / "report"
    flags = [f"--runs={tmp_path / 'empty'}", f"--output={output}"]
    with pytest.raises(ConfigError):
        main(["claims", *flags])
    assert not output.exists()
