"""Readers, and predictors without a network."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tests.models.small_images import INDEX, LEVELS, REGION, TABLE
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.metrics import references
from tfcomp.metrics.point_scores import Evaluation
from tfcomp.report.verbalize import format_references, list_references
from tfcomp.representations import readers


@pytest.fixture(scope="module")
def reader() -> tfcomp.Reader:
    return tfcomp.train_reader(TABLE)


def draw_wrong_place(factors: np.ndarray) -> np.ndarray:
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
    page = result.write_report(tmp_path, ["readings"]).read_text("utf-8")
    assert "All factors are read right in" in page
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


SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,8,8"
).split()


def make(region: str, *flags: str) -> Dataset:
    return make_dataset(parse_config([*SPRITES, f"--region={region}", *flags]))


@pytest.fixture(scope="module")
def diagonal() -> Dataset:
    return make("wiedemer:diagonal:.4", "--sprite_sizes=3,3,4,4,4")


def compute_r2(images: np.ndarray, truth: np.ndarray) -> float:
    """R² about the mean true image, by its definition."""
    total = sum(((image - truth.mean(0)) ** 2).sum() for image in truth)
    return float(1 - ((images - truth) ** 2).sum() / total)


def test_r2_by_its_definition(diagonal: Dataset) -> None:
    truth, is_ood = diagonal.grid_images, diagonal.splits.is_ood
    noise = 0.1 * np.random.default_rng(1).normal(size=truth.shape)

    def score(images: np.ndarray) -> dict[str, float | None]:
        drawn = Evaluation(images, truth, {})
        return references.score_certified(diagonal, drawn, None)

    assert score(truth) == {"id": 1, "ood": 1}
    by_hand = compute_r2((truth + noise)[is_ood], truth[is_ood])
    assert score(truth + noise)["ood"] == pytest.approx(by_hand)
    assert score(truth * np.nan) == {"id": None, "ood": None}


def test_equal_images_have_no_r2() -> None:
    """The mean of float32 numbers may differ from them by rounding."""
    images = np.full((9, 4, 4), 0.1, np.float32)
    images[:2] = np.random.default_rng(0).random((2, 4, 4))
    table = tfcomp.FactorTable(images, np.arange(9)[:, None])
    found = tfcomp.evaluate(table.draw, table, "factor_0:2-8")
    truth = found.dataset.grid_images
    drawn = Evaluation(truth + 0.1, truth, {})
    scores = references.score_certified(found.dataset, drawn, None)
    assert scores["ood"] is None and scores["id"] is not None


def test_errors_count_where_they_are(diagonal: Dataset) -> None:
    """Wrong on others alone: certified 1, others below, ood between."""
    found = certify_dataset(diagonal)[1]
    truth = diagonal.grid_images
    wrong = diagonal.splits.is_ood & ~found.certified
    images = np.where(wrong[:, None, None, None], 0, truth)
    scores = references.score_certified(
        diagonal, Evaluation(images, truth, {}), found
    )
    assert scores["id"] == scores["certified"] == 1
    assert scores["others"] < 0 < scores["ood"] < 1


def test_references_equal_their_definition(diagonal: Dataset) -> None:
    """By loops over combinations: the most frequent value in training."""
    truth, splits = diagonal.grid_images, diagonal.splits
    found = references.score_references(diagonal, truth)
    held_out = splits.grid[splits.is_ood]
    for column, factor in enumerate(diagonal.space):
        train = splits.train[:, column].tolist()
        most = max(sorted(set(train)), key=train.count)
        others = [[*p[:column], most, *p[column + 1 :]] for p in held_out]
        images = diagonal.render_array(np.array(others, np.float32))
        expected = compute_r2(images, truth[splits.is_ood])
        scores = found[f"without_{factor.name}"]
        assert scores["ood_r2"] == pytest.approx(expected, abs=1e-6)
        assert "id" not in scores
    assert found["nearest_id"]["id_r2"] == pytest.approx(1)
    assert 0.5 < found["additive"]["id_r2"] < 1


def test_a_split_where_only_the_ellipse_turns() -> None:
    """Ignoring the turns has .92, half turns .95: above many decoders."""
    dataset = make("wiedemer:orthogonal")
    found = references.score_references(dataset, dataset.grid_images)
    names = "without_orientation", "modulo_orientation"
    r2 = [round(found[name]["ood_r2"], 2) for name in names]
    assert r2 == [0.92, 0.95]
    assert list(list_references(found))[2] == "modulo_orientation"
    last = format_references(found).splitlines()[-1]
    assert last.split()[:2] == ["modulo_orientation", "-"]
    # Half of the turns of hearts: the squares and ellipses are the same.
    points = dict(references.list_ignorant(dataset))["modulo_orientation"]
    angles = dataset.splits.grid[dataset.splits.is_ood][:, 2]
    assert set(points[:, 2]) < set(angles.tolist())
    np.testing.assert_array_equal(points[:, 2] % 180, angles % 180)


def test_nothing_is_ignored_that_no_image_shows() -> None:
    """Squares and ellipses at 0 and 180 degrees: no reference is the truth."""
    dataset = make("random:0.2", "--grid_size=8", "--sprite_sizes=2,2,2,3,3")
    found = references.score_references(dataset, dataset.grid_images)
    assert {"without_shape", "without_x"} < {*found}
    assert not [name for name in found if name.endswith("_orientation")]


def test_combinations_that_do_not_exist_have_none(diagonal: Dataset) -> None:
    """Held-out squares, which stand for all shapes, are missing."""
    every, splits = diagonal.splits.all, diagonal.splits
    points = dict(references.list_ignorant(diagonal))
    shape = points["without_shape"][0, 0]
    known = every[~every.is_ood | (every.factors[:, 0] != shape)]
    splits = dataclasses.replace(splits, points=known, existing=known)
    lacking = dataclasses.replace(diagonal, splits=splits)
    assert "without_shape" not in dict(references.list_ignorant(lacking))
