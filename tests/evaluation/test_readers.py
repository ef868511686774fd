"""Readers: what they say of planted models, and of which they are no use."""

from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tests.evaluation.small_images import INDEX, LEVELS, REGION, TABLE
from tfcomp.evaluation import readers


@pytest.fixture(scope="module")
def reader() -> tfcomp.Reader:
    return tfcomp.train_reader(TABLE)


def draw_wrong_place(factors: np.ndarray) -> np.ndarray:
    """Held-out combinations are drawn one place to the left."""
    moved = factors.copy()
    is_ood = (factors[:, 0] == 2) & (factors[:, 1] >= 4)
    moved[is_ood, 1] -= 1
    return TABLE.draw(moved)


def find(rows: list[dict], **asked: object) -> dict:
    (row,) = (r for r in rows if all(r[k] == v for k, v in asked.items()))
    return row


def test_true_images_are_read(reader: tfcomp.Reader) -> None:
    accuracy = reader.accuracy.set_index("factor")
    assert list(accuracy.index) == ["shape", "x", "y"]
    assert (accuracy["true"] > 0.99).all() and (accuracy["noise"] > 0.9).all()
    assert accuracy["shifted"]["x"] < 0.3 and accuracy["shifted"]["y"] > 0.9


def test_readings_by_factor_and_level(
    reader: tfcomp.Reader, tmp_path: Path
) -> None:
    result = tfcomp.evaluate(draw_wrong_place, TABLE, REGION, reader=reader)
    rows = result.run.tables["readings"]
    for name, right in (("shape", 1), ("x", 0), ("y", 1), ("all", 0)):
        for subset in ("id", "ood"):
            row = find(rows, subset=subset, level="any", factor=name)
            expected = right if subset == "ood" else 1
            assert row["accuracy"] == pytest.approx(expected, abs=0.03)
            assert row["ceiling"] > 0.97
            assert row["near"] > 0.97  # one step off
    levels = {(row["subset"], row["level"]) for row in rows}
    assert levels == {("id", "any"), ("id", "0"), ("ood", "any"), ("ood", "1")}
    page = result.write_report(tmp_path / "report").read_text("utf-8")
    assert "model: all factors are read right in" in page
    assert "reader_accuracy" in result.explore().html
    assert "readings" in result.tables and "near_ceiling" in repr(result)
    frame = result.to_frame()
    assert not frame.loc[frame["is_ood"], "reads_x"].any()
    assert frame["reads_y"].mean() > 0.97


def test_levels_by_their_definition() -> None:
    region = (INDEX > 0).sum(axis=1) >= 2  # what is left is a star
    data = tfcomp.evaluate(TABLE.draw, TABLE, region).dataset
    index = data.space.to_index(data.splits.grid)
    known = index[data.splits.is_id]
    slow = [int((known != row).sum(axis=1).min()) for row in index]
    assert readers.find_levels(data).tolist() == slow
    assert max(slow) == 2


def test_samples_of_a_stochastic_model(reader: tfcomp.Reader) -> None:
    rng = np.random.default_rng(0)

    def draw(factors: np.ndarray) -> np.ndarray:
        return TABLE.draw(factors) * (rng.random((len(factors), 1, 1, 1)) > 0.5)

    result = tfcomp.evaluate(draw, TABLE, REGION, reader=reader, samples=5)
    rows = result.run.tables["readings"]
    row = find(rows, subset="id", level="any", factor="all")
    assert row["accuracy"] == pytest.approx(0.5, abs=0.1)


def test_a_reader_that_fails_on_true_images(reader: tfcomp.Reader) -> None:
    """It is said before anything is scored: the model is not called."""

    def fail(factors: np.ndarray) -> np.ndarray:
        raise AssertionError("the model was called")

    images = TABLE.draw(TABLE.points)
    noisy = images + np.random.default_rng(0).normal(0, 9, images.shape)
    noisy = (noisy - noisy.min()) / np.ptp(noisy)
    names = ["shape", "x", "y"]
    other = tfcomp.FactorTable(noisy, INDEX, names=names, levels=LEVELS)
    with pytest.raises(tfcomp.ConfigError, match="of no use.*shape") as caught:
        tfcomp.evaluate(fail, other, REGION, reader=reader)
    assert "\n" not in str(caught.value)
    few = tfcomp.FactorTable(images[:, :8], INDEX)
    with pytest.raises(tfcomp.ConfigError, match="must be trained on such"):
        tfcomp.evaluate(fail, few, reader=reader)
