"""The candidate is called where tfcomp does not exist; pushed once."""

from pathlib import Path

import numpy as np
import pytest

from pipelines import steps
from tfcomp.config.errors import RunError


@pytest.mark.parametrize(
    "wrong",
    [
        np.ones((2, 4, 4, 1)),  # one image fewer
        np.full((3, 4, 4, 1), np.nan),
        np.full((3, 4, 4, 1), 1.01),
    ],
)
def test_wrong_images(wrong: np.ndarray):
    expected = np.ones((3, 4, 4, 1))
    steps.compare_images(expected + 1e-6, expected)
    with pytest.raises(RunError):
        steps.compare_images(wrong, expected)


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.json"
    path.write_text("{}")
    return path


def make_model(folder: Path, weights: str) -> Path:
    """A folder that looks like an exported model."""
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "data").write_text(weights)
    (folder / "assets.extra").mkdir()
    (folder / "assets.extra" / "weights.sha256").write_text(weights)
    return folder


def test_a_version_is_pushed_again_if_it_is_damaged(
    tmp_path: Path,
    evaluation: Path,
):
    model = make_model(tmp_path / "a", "a")
    out = tmp_path / "out"
    version, _ = steps.push_model(model, out, evaluation)
    again = steps.push_model(model, out, evaluation)
    assert again == (version, False)
    (version / "variables" / "data").unlink()

    version, _ = steps.push_model(model, out, evaluation)
    assert version.name == "2"

    (version / "variables" / "data").write_text("b")
    version, _ = steps.push_model(model, out, evaluation)
    assert version.name == "3"
