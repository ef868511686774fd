"""Tables of the docs are those that the committed evidence gives.

A table that `tfcomp study claims --runs=docs/evidence` writes stands
in a page behind a comment with the name of its file, as
`<!-- docs/reports/campaign/verdicts.md -->`.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.studies.claims.test_packed_evidence import write_study, write_sweep
from tfcomp.storage.files import write_csv
from tfcomp.studies.claims import read_evidence
from tfcomp.studies.claims.claim_report import judge_all, list_rows, make_tables
from tfcomp.studies.claims.packed_evidence import pack_evidence
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
    for name in (
        "verdicts.md",
        "controls.md",
        "history.md",
        "scores_hard_found.md",
    ):
        found = {Path(n).name for n, _ in NAMED.findall(shown)}
        assert name in found, name


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


def test_a_mismatch_is_found(tmp_path: Path) -> None:
    write_sweep(tmp_path / "logs" / "donuts")
    write_study(tmp_path / "logs" / "slopes")
    pack_evidence([str(tmp_path / "logs")], tmp_path / "evidence")
    evidence = read_evidence([str(tmp_path / "evidence")])
    made = make_tables(evidence, judge_all(evidence))
    names = [f"docs/reports/campaign/{name}" for name in made]
    tables = {n: t for n, t in zip(names, made.values(), strict=True)}
    del tables["docs/reports/campaign/report.md"]  # no table alone
    text = "\n".join(f"<!-- {n} -->\n{t}" for n, t in tables.items())
    assert len(NAMED.findall(text)) == 5  # verdicts, controls, scores, data
    assert list_mismatches(text, made) == []
    assert "**reproduced**" in made["verdicts.md"]
    wrong = text.replace("**reproduced**", "**refuted**", 1)
    assert len(list_mismatches(wrong, made)) == 1
    for lines in ("| a |\n", "no table\n"):
        unknown = f"<!-- docs/tables/few_shot.md -->\n{lines}"
        assert list_mismatches(unknown, made) == ["docs/tables/few_shot.md"]
