"""The committed study: the page shows what its networks give."""

import lzma
from pathlib import Path

import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.storage.files import DamagedFileError
from tfcomp.studies.prediction.command import main
from tfcomp.studies.prediction.networks import read_networks
from tfcomp.studies.prediction.rules import Row, judge_numbers

DOCS = Path(__file__).parents[3] / "docs"
# Of 460 numbers, those that the page speaks of most. The exploring half has
# proposed the last one alone.
KEYS = [
    "0.1|id.factorization.last",
    "0.25|id_relative_mse",
    "1|all.alignment_radial",
]


def test_page_shows_what_the_networks_give() -> None:
    study = read_networks(DOCS / "predict_evidence/networks.csv.xz")
    assert len(study.table) == 1152 and study.table["reached"].sum() == 1046
    names = study.hyperparameters
    assert names[0] == "model" and names[-1] == "region" and len(names) == 7
    explored, half = map(study.get_half, ("explore", "confirm"))
    assert (len(explored.table), len(half.table)) == (508, 538)
    assert len(explored.list_numbers()) == 460
    page = (DOCS / "predict.md").read_text("utf-8").replace("−", "-")
    first = judge_numbers(explored, KEYS)
    rows = list(first.values())
    assert [row["passes"] for row in rows] == [False, False, True]
    signs = {key: row["sign"] for key, row in first.items()}
    for row in rows + [*judge_numbers(half, KEYS, signs, KEYS[2:]).values()]:
        for name in ("tau", "conditional_tau", "gain"):
            assert format_interval(row, name) in page


def format_interval(row: Row, name: str) -> str:
    ends = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    tau, low, high = (f"{end:.2f}".replace("0.", ".") for end in ends)
    return f"{tau} [{low}, {high}]"


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv.xz"
    for text in ("", "half,model\n", "half,model,seed\nexplore,cnn,0\n"):
        path.write_bytes(lzma.compress(text.encode()))
        with pytest.raises(DamagedFileError, match="networks.csv"):
            read_networks(path)
    output = f"--output={tmp_path / 'new'}"
    with pytest.raises(ConfigError, match="--runs must name"):
        main(["prediction", output])
    with pytest.raises(ConfigError, match="one prediction study, not 2"):
        main(["prediction", output, f"--runs={DOCS}"])
    assert not (tmp_path / "new").exists()
