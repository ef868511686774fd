"""The candidate is called where tfcomp does not exist; pushed once."""

from pathlib import Path

import numpy as np
import pytest

from pipelines.steps import release
from pipelines.steps.evaluator import EVALUATION
from tfcomp.config.errors import RunError
from tfcomp.storage.files import list_versions


@pytest.mark.parametrize(
    "wrong",
    [
        np.ones((2, 4, 4, 1)),  # one image fewer
        np.full((3, 4, 4, 1), np.nan),
        np.full((3, 4, 4, 1), 1.01),
    ],
)
def test_wrong_images(wrong: np.ndarray) -> None:
    expected = np.ones((3, 4, 4, 1))
    release.compare_images(expected + 1e-6, expected)
    with pytest.raises(RunError):
        release.compare_images(wrong, expected)


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


def test_same_model_is_pushed_once(tmp_path: Path, evaluation: Path) -> None:
    out = tmp_path / "out" / "name"
    first = make_model(tmp_path / "a", "a")
    second = make_model(tmp_path / "b", "b")
    # Back to an earlier model is a new version: the last one counts.
    order = [first, first, second, first]

    pushes = [release.push_model(model, out, evaluation) for model in order]

    versions = [version for version, _ in pushes]
    assert versions == [out / number for number in "1123"]
    assert [is_new for _, is_new in pushes] == [True, False, True, True]
    assert list_versions(out) == [out / number for number in "123"]
    for version, model in zip(versions, order, strict=True):
        assert (version / "variables" / "data").read_text() == model.name
        assert (version / EVALUATION).read_text() == "{}"


def test_damaged_version_is_no_copy(tmp_path: Path, evaluation: Path) -> None:
    model = make_model(tmp_path / "a", "a")
    out = tmp_path / "out"
    version, _ = release.push_model(model, out, evaluation)
    (version / "variables" / "data").unlink()

    version, is_new = release.push_model(model, out, evaluation)

    assert is_new and version.name == "2"
    (version / "variables" / "data").write_text("b")
    version, is_new = release.push_model(model, out, evaluation)
    assert is_new and version.name == "3"
