"""The page and the table of claims are those of the committed evidence."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction.claims import Evidence, write_report
from reproduction.claims.command import main
from tfcomp.config.errors import ConfigError

ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "reproduction" / "evidence"
COMMAND = """
import sys
from reproduction.claims.command import main
assert main(sys.argv) == 0 and "tensorflow" not in sys.modules
"""


def test_the_pages_are_those_of_the_evidence(tmp_path: Path):
    flags = [f"--runs={EVIDENCE}", f"--output={tmp_path}"]

    subprocess.run(
        [sys.executable, "-c", COMMAND, *flags],
        check=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )

    page = (tmp_path / "results.md").read_text("utf-8")
    table = (tmp_path / "claims.csv").read_text("utf-8")
    assert page == (ROOT / "docs/results.md").read_text("utf-8")
    assert table == (ROOT / "docs/tables/claims.csv").read_text("utf-8")
    assert len(page.splitlines()) <= 150
    for row in re.findall(r"^\|(.*)\|$", page, re.MULTILINE):
        cells = row.replace("\\|", "¦").split("|")
        assert len(cells) == 7
        assert max(len(cell.strip()) for cell in cells) <= 60


def test_without_evidence_all_is_open(tmp_path: Path):
    claims = {f"C{number}" for number in range(1, 24)}

    rows = write_report(Evidence(), tmp_path)

    assert {row.holds for row in rows} <= {"open", "-"}
    assert {row.claim for row in rows} == claims - {"C16"}


def test_nothing_is_written_without_runs(tmp_path: Path):
    output = tmp_path / "report"

    with pytest.raises(ConfigError):
        main(["claims", f"--runs={tmp_path}", f"--output={output}"])

    assert not output.exists()
