"""`tfcomp embeddings FILE.npz`: what it prints, and files that break rules."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from tfcomp import embeddings
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.report.model_report import ModelReport

pytestmark = pytest.mark.usefixtures("untraced")

CLASSES = np.array(list(np.ndindex(3, 4, 5)))
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(3, 5, 8))  # of each factor and level
SUM = VECTORS[np.arange(3), CLASSES].sum(axis=1)


def write(path: Path, **changes: Any) -> Path:
    members = {"classes": CLASSES, "names": ["shape", "x", "y"], "late": SUM}
    members |= changes
    for name in [name for name in members if members[name] is None]:
        del members[name]
    np.savez(path, **members)
    return path


def run(*arguments: object) -> int:
    return embeddings.main(["tfcomp embeddings", *map(str, arguments)])


def test_scores_and_report(
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    write_report = Mock(return_value="report.html")
    monkeypatch.setattr(ModelReport, "write_report", write_report)
    path = write(tmp_path / "own.npz")

    assert run(path, "--region=shape:2,x:2-3", "--output=report") == 0

    printed = capsys.readouterr()
    assert "held out: 10 of 60 combinations" in printed.err
    assert "2 held out in part" in printed.err
    names, scores, *_ = printed.out.splitlines()
    row = dict(zip(names.split(), scores.split(), strict=True))
    assert row["classes"] == "given"
    assert float(row["additive_r2"]) == 1
    assert float(row["composed_ood"]) == pytest.approx(0, abs=1e-6)
    write_report.assert_called_once_with("report")
    assert "report  report.html" in printed.out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"late": SUM[:9]}, "rows"),
        ({"classes": None, "names": None}, "factors"),
        ({"late": SUM * np.inf}, "finite"),
        ({"classes": CLASSES * 0}, "classes"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    changes: dict,
    words: str,
):
    path = write(tmp_path / "own.npz", **changes)

    with pytest.raises(RunError, match=words) as caught:
        run(path)

    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"--embeddings={path}")
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_none(tmp_path: Path):
    with pytest.raises(ConfigError, match="npz"):
        run(tmp_path / "own.csv")
    with pytest.raises(ConfigError, match="region"):
        run(write(tmp_path / "own.npz"), "--region=z:3")
