"""The committed study: the page shows what its networks give."""

from pathlib import Path

import pytest

from tfcomp.storage.files import DamagedFileError
from tfcomp.studies.prediction.networks import HALVES, Networks, read_networks
from tfcomp.studies.prediction.rules import Row, judge

DOCS = Path(__file__).parents[3] / "docs"
# Of 460 numbers, those that the page speaks of most. The exploring half has
# proposed the last one alone.
KEYS = [
    ("id.factorization.last", 0.1),
    ("id_relative_mse", 0.25),
    ("all.alignment_radial", 1.0),
]


@pytest.fixture(scope="module")
def study() -> Networks:
    return read_networks(DOCS / "predict_evidence/networks.csv.xz")


def test_numbers_of_networks_are_those_of_the_page(study: Networks) -> None:
    assert len(study.table) == 1152 and study.table["reached"].sum() == 1046
    sizes = [len(study.get_half(half).table) for half in HALVES]
    assert sizes == [508, 538]
    assert len(study.get_half("explore").list_keys()) == 460
    names = study.hyperparameters
    assert names[0] == "model" and names[-1] == "region" and len(names) == 7


def test_page_shows_what_the_networks_give(study: Networks) -> None:
    page = (DOCS / "predict.md").read_text("utf-8").replace("−", "-")
    first = list(judge(study.get_half("explore"), KEYS))
    assert [row["passes"] for row in first] == [False, False, True]
    pairs = zip(KEYS, first, strict=True)
    signs = {key: row["sign"] for key, row in pairs}
    second = list(judge(study.get_half("confirm"), KEYS, signs, KEYS[2:]))
    for row in first + second:
        for name in ("tau", "conditional_tau", "gain"):
            assert format_interval(row, name) in page


def format_interval(row: Row, name: str) -> str:
    ends = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    tau, low, high = (f"{end:.2f}".replace("0.", ".") for end in ends)
    return f"{tau} [{low}, {high}]"


def test_a_damaged_table_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    for text in ("", "half,model\n", "half,model,seed\nexplore,cnn,0\n"):
        path.write_text(text)
        with pytest.raises(DamagedFileError, match="networks.csv"):
            read_networks(path)
