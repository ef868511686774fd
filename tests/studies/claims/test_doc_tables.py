"""Tables of the docs are those that the committed evidence gives.

A table that `tfcomp study claims --runs=docs/evidence` writes stands
in a page behind a comment with the name of its file, as
`<!-- docs/reports/campaign/verdicts.md -->`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfcomp.storage.files import write_csv
from tfcomp.studies.claims import read_evidence
from tfcomp.studies.claims.command import judge_all, list_rows, make_tables
from tfcomp.studies.decoders import command as decoders

ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "docs" / "evidence"
DECODERS = ROOT / "docs" / "decoder_evidence"
PAGES = ("docs/results.md", "docs/claims.md", "docs/evidence/history.md")
NAMED = re.compile(r"<!-- (docs/\S+\.md) -->\n((?:\|.*\n)*)")


def list_mismatches(text: str, made: Mapping[str, str]) -> list[str]:
    """The tables of a page that the evidence does not give, by their names."""
    return [
        name
        for name, table in NAMED.findall(text)
        if made.get(Path(name).name, "unknown").strip() != table.strip()
    ]


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no evidence is committed")
def test_the_tables_of_the_pages_are_those_of_the_evidence(
    tmp_path: Path,
) -> None:
    evidence = read_evidence([str(EVIDENCE)])
    judged = judge_all(evidence)
    made = make_tables(evidence, judged)
    # Every verdict and number, to the last digit.
    rows = [row for r in judged["results"] for row in list_rows(r)]
    write_csv(tmp_path / "claims.csv", rows)
    expected = (ROOT / "docs/tables/claims.csv").read_text("utf-8")
    assert (tmp_path / "claims.csv").read_text("utf-8") == expected
    pages = {page: (ROOT / page).read_text("utf-8") for page in PAGES}
    for page, text in pages.items():
        assert list_mismatches(text, made) == [], page
    shown = "".join(pages.values())
    found = {Path(name).stem for name, _ in NAMED.findall(shown)}
    assert found >= {"verdicts", "controls", "history", "scores_hard_found"}


@pytest.mark.skipif(not DECODERS.exists(), reason="no evidence is committed")
def test_the_tables_of_decoders_are_those_of_the_evidence(
    tmp_path: Path,
) -> None:
    flags = ["decoders", f"--runs={DECODERS}", f"--output={tmp_path}"]
    assert decoders.main(flags) == 0
    page = (ROOT / "docs/decoders.md").read_text("utf-8")
    for name in ("decoders.md", "solved.md"):
        for table in (tmp_path / name).read_text("utf-8").split("\n\n"):
            assert table.strip() in page
    for name in ("decoders.csv", "solved.csv"):
        made = (tmp_path / name).read_text("utf-8")
        assert (ROOT / "docs/tables" / name).read_text("utf-8") == made


def test_a_mismatch_is_found() -> None:
    table = "| a |\n|---|\n| **reproduced** |\n"
    text = f"<!-- docs/reports/verdicts.md -->\n{table}"
    assert list_mismatches(text, {"verdicts.md": table}) == []
    wrong = table.replace("reproduced", "refuted")
    name = "docs/reports/verdicts.md"
    for made in ({"verdicts.md": wrong}, {}):
        assert list_mismatches(text, made) == [name]
    assert list_mismatches(f"<!-- {name} -->\nno table\n", {}) == [name]
