"""`tfcomp embeddings FILE.npz`: what it prints, and files that break rules."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfcomp import embeddings
from tfcomp.config.errors import ConfigError, RunError

SIZES = (3, 4, 5)
CLASSES = np.stack(np.unravel_index(np.arange(60), SIZES), axis=1)
RNG = np.random.default_rng(0)
SUM = sum(RNG.normal(size=(s, 8))[c] for s, c in zip(SIZES, CLASSES.T))  # noqa: B905


def write(path: Path, **others: Any) -> Path:
    members = {"classes": CLASSES, "names": ["shape", "x", "y"], "late": SUM}
    members |= others
    np.savez(path, **{k: v for k, v in members.items() if v is not None})
    return path


def run(*arguments: object) -> int:
    return embeddings.main(["tfcomp embeddings", *map(str, arguments)])


def test_scores_and_report(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    early = RNG.normal(size=SUM.shape)
    path = write(tmp_path / "own.npz", late=None, early=early, last=SUM)
    arguments = path, "--region=shape:2,x:2-3"
    assert run(*arguments, f"--output={tmp_path}/report") == 0
    lines = capsys.readouterr().out.splitlines()
    header, last = lines[0].split(), lines[3].split()
    row = dict(zip(header, last, strict=True))
    assert row["classes"] == "given" and float(row["additive_r2"]) == 1
    assert abs(float(row["composed_ood"])) < 1e-6
    assert (tmp_path / "report/report.html").exists()


@pytest.mark.parametrize(
    ("others", "words"),
    (
        ({"late": SUM[:9]}, "rows"),
        ({"classes": None, "names": None}, "factors"),
        ({"late": SUM * np.inf}, "finite"),
        ({"classes": CLASSES * 0}, "classes"),
    ),
)
def test_mistakes_are_one_line(
    tmp_path: Path, others: dict, words: str
) -> None:
    path = write(tmp_path / "own.npz", **others)
    with pytest.raises(RunError, match=words) as caught:
        run(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"--embeddings={path}")
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="npz"):
        run(tmp_path / "own.csv")
    with pytest.raises(ConfigError, match="region"):
        run(write(tmp_path / "own.npz"), "--region=z:3")
