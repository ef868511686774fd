"""The page and the table of claims are those of the committed evidence."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from reproduction.claims import Evidence, write_report
from reproduction.claims.command import main
from reproduction.claims.evidence import Networks
from tfcomp.config.errors import ConfigError
from tfcomp.metrics.registry import find_metric

ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "reproduction" / "evidence"


def test_the_pages_are_those_of_the_evidence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "tensorflow", None)  # it is not needed

    flags = [f"--runs={EVIDENCE}", f"--output={tmp_path}"]
    assert main(["claims", *flags]) == 0

    page = (tmp_path / "results.md").read_text("utf-8")
    table = (tmp_path / "claims.csv").read_text("utf-8")
    assert page == (ROOT / "docs/results.md").read_text("utf-8")
    assert table == (ROOT / "docs/tables/claims.csv").read_text("utf-8")
    assert len(page.splitlines()) <= 150
    for row in re.findall(r"^\|(.*)\|$", page, re.MULTILINE):
        cells = row.replace("\\|", "¦").split("|")
        assert len(cells) == 7
        assert max(len(cell.strip()) for cell in cells) <= 60


def test_without_evidence_all_is_open(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """Claims ask for numbers that runs have."""
    claims = {f"C{number}" for number in range(1, 24)}
    asked = set()
    for method in ("score", "stages"):
        read = getattr(Networks, method)

        def spy(self: Any, name: str, read=read) -> Any:
            asked.add(name)
            return read(self, name)

        monkeypatch.setattr(Networks, method, spy)

    rows = write_report(Evidence(), tmp_path)

    assert {row.holds for row in rows} <= {"open", "-"}
    assert {row.number.n for row in rows} == {0}
    assert {row.claim for row in rows} == claims - {"C16"}
    assert len(asked) > 40
    for path in asked:
        parts = path.split("/")
        # What training itself writes is no metric.
        is_written = parts[0] in ("train", "embeddings")
        assert is_written or any(map(find_metric, parts)), path


def test_nothing_is_written_without_runs(tmp_path: Path):
    output = tmp_path / "report"

    with pytest.raises(ConfigError):
        main(["claims", f"--runs={tmp_path}", f"--output={output}"])

    assert not output.exists()
