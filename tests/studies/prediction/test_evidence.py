"""The committed study: its tables follow from what it recorded."""

import csv
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfcomp.storage.run_search import find_folders
from tfcomp.studies.claims.packed_evidence import unpack
from tfcomp.studies.prediction.design import HALVES, Found, read_found
from tfcomp.studies.prediction.evidence import make_evidence
from tfcomp.studies.prediction.judgement import judge

DOCS = Path(__file__).parents[3] / "docs"
AXES = "model encoding depth width learning_rate weight_decay region".split()
# Of 460 rows, those that the page speaks of most.
KEYS = [
    ("id.factorization.last", "0.1"),
    ("id_relative_mse", "0.25"),
    ("all.alignment_radial", "1"),
]
Table = dict[tuple[str, str], dict[str, str]]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    with tarfile.open(DOCS / "predict_evidence/predict.tar.xz") as archive:
        return {
            Path(member.name).name: archive.extractfile(member).read().decode()
            for member in archive
            if member.isfile()
        }


@pytest.fixture(scope="module")
def found() -> dict[str, list[Found]]:
    with unpack([str(DOCS / "predict_evidence")]) as (_, place):
        (folder,) = find_folders([place], lambda n: "predict.flags" in n)
        _, found = read_found(folder)
    return {half: [e for e in found if e.cell.half == half] for half in HALVES}


def read_table(text: str) -> Table:
    rows = csv.DictReader(io.StringIO(text))
    return {(r["measure"], f"{float(r['time']):g}"): r for r in rows}


def test_a_thousand_networks_reached_the_target(
    found: Mapping[str, list[Found]],
) -> None:
    reached = [e.record["reached"] for half in found.values() for e in half]
    assert len(reached) == 1152 and sum(reached) >= 1000


def test_tables_are_what_the_records_give(
    files: Mapping[str, str], found: Mapping[str, list[Found]]
) -> None:
    tables = [read_table(files[f"{half}.csv"]) for half in HALVES]
    proposed = [k for k, row in tables[0].items() if row["passes"] == "True"]
    signs = {key: float(tables[0][key]["sign"]) for key in KEYS}
    axes = [(name,) for name in AXES]
    evidence = [make_evidence(found[half], axes) for half in HALVES]
    again = [
        judge(evidence[0], KEYS),
        judge(evidence[1], KEYS, signs, proposed),
    ]
    for table, rows in zip(tables, again, strict=True):
        for key, row in zip(KEYS, rows, strict=True):
            for name, value in row.items():
                committed = table[key][name]
                if isinstance(value, float):
                    assert float(committed) == pytest.approx(value)
                else:
                    assert committed == str(value)


def test_page_shows_the_tables(files: Mapping[str, str]) -> None:
    page = (DOCS / "predict.md").read_text("utf-8").replace("−", "-")
    for half in HALVES:
        for row in map(read_table(files[f"{half}.csv"]).get, KEYS):
            for name in ("tau", "conditional_tau", "gain"):
                ends = (float(row[name + end]) for end in ("", "_low", "_high"))
                tau, low, high = (f"{e:.2f}".replace("0.", ".") for e in ends)
                assert f"{tau} [{low}, {high}]" in page
