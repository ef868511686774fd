"""Readers, and predictors without a network."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pytest import approx

import tfcomp
from tests.conftest import set_tracing
from tests.models.small_images import INDEX, LEVELS, REGION, TABLE
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import Dataset, Factor, FactorSpace, make_dataset
from tfcomp.datasets.solvable import certify_dataset
from tfcomp.metrics import references
from tfcomp.metrics.scores import Evaluation
from tfcomp.report.report_build import MAKERS
from tfcomp.report.verbalize import describe_baselines, list_references

pytestmark = pytest.mark.usefixtures("untraced", "few_permutations")


@pytest.fixture(scope="module")
def reader() -> tfcomp.Reader:
    with set_tracing(True):
        return tfcomp.train_reader(TABLE)


def move_ood(factors: np.ndarray) -> np.ndarray:
    """True images; those of held-out combinations are a step off in x."""
    shape, x, _ = factors.T
    is_ood = (shape == 2) & (x >= 4)
    moved = factors.copy()
    moved[is_ood, 1] -= 1
    return TABLE.draw(moved)


def test_readings_are_compared_around_a_period():
    angle = Factor(
        "angle",
        8,
        0.0,
        360.0,
        periodic=True,
    )
    x = Factor("x", 8, 0.0, 7.0)
    reader = tfcomp.Reader(None, FactorSpace((angle, x)))
    points = np.array([[0.0, 0.0], [0.0, 7.0]])
    readings = np.array([[7, 7], [2, 6]])

    is_right = reader.match(readings, points, steps=1)

    assert is_right.tolist() == [[True, False], [False, True]]


def test_images_of_all_batches_are_read(reader):
    images = np.tile(TABLE.draw(INDEX[:40]), (13, 1, 1, 1))

    readings = reader.read(images)

    assert_array_equal(readings, np.tile(reader.read(images[:40]), (13, 1)))


def test_true_images_are_read(reader):
    accuracy = reader.accuracy.set_index("factor")

    assert reader.nuisance is None
    assert list(accuracy.index) == ["shape", "x", "y"]
    assert accuracy["true"].min() > 0.99
    assert accuracy["noise"].min() > 0.9
    assert accuracy["shifted"]["x"] < 0.3
    assert accuracy["shifted"]["y"] > 0.9


def index_readings(report: tfcomp.ModelReport) -> pd.DataFrame:
    table = report.tables["readings"]
    index = ["subset", "level", "factor"]
    return table.set_index(index).sort_index()


def test_readings_by_factor_and_level(reader):
    report = tfcomp.evaluate(
        move_ood,
        TABLE,
        REGION,
        reader=reader,
    )

    table = index_readings(report)
    levels = set(table.index.droplevel("factor"))
    assert levels == {
        ("id", "any"),
        ("id", "0"),
        ("ood", "any"),
        ("ood", "1"),
    }
    assert table["ceiling"].min() > 0.97
    assert table["near"].min() > 0.97  # one step off
    accuracy = table["accuracy"]
    assert accuracy["id"].min() > 0.97
    expected = {
        "shape": 1,
        "x": 0,
        "y": 1,
        "all": 0,
    }
    assert accuracy["ood", "any"].to_dict() == approx(expected, abs=0.03)

    frame = report.to_frame()
    held_out = frame[frame["is_ood"]]
    assert not held_out["reads_x"].any()
    assert frame["reads_y"].mean() > 0.97
    section = MAKERS["readings"]([report.analysis])
    exhibit, _ = section.exhibits
    assert len(exhibit.rows) == len(table)


def test_levels_by_their_definition():
    num_changed = (INDEX > 0).sum(axis=1)
    region = num_changed >= 2  # what is left is a star
    dataset = tfcomp.evaluate(TABLE.draw, TABLE, region).dataset

    levels = references.find_levels(dataset)

    index = dataset.space.to_index(dataset.splits.grid)
    known = index[dataset.splits.is_id]
    for row, level in zip(index, levels, strict=True):
        num_other_values = (known != row).sum(axis=1)
        assert level == num_other_values.min()
    assert max(levels) == 2


def test_data_without_full_combinations_have_no_levels():
    flags = "--dataset=stripes --region=corner:4 --grid_size=8 --num_bumps=0"
    dataset = make_dataset(parse_config(flags.split()))

    parts = list(references.list_levels(dataset))

    assert {level for _, level, _ in parts} == {"any"}


def test_samples_of_a_stochastic_model(reader, rng):
    def sample(factors: np.ndarray) -> np.ndarray:
        images = TABLE.draw(factors)
        is_blank = rng.random(len(factors)) > 0.5
        images[is_blank] = 0
        return images

    report = tfcomp.evaluate(
        sample,
        TABLE,
        REGION,
        reader=reader,
        samples=3,
    )

    accuracy = index_readings(report)["accuracy"]
    assert accuracy["id", "any", "all"] == approx(0.5, abs=0.1)


def make_noisy() -> tfcomp.FactorTable:
    rng = np.random.default_rng(0)
    images = TABLE.draw(TABLE.points)
    noisy = images + rng.normal(0, 9, images.shape)
    noisy = (noisy - noisy.min()) / np.ptp(noisy)
    return tfcomp.FactorTable(
        noisy,
        INDEX,
        names=TABLE.space.names,
        levels=LEVELS,
    )


def make_small() -> tfcomp.FactorTable:
    images = TABLE.draw(TABLE.points)
    return tfcomp.FactorTable(images[:, :8], INDEX)


@pytest.mark.parametrize(
    ("make_table", "word"),
    [(make_noisy, "of no use"), (make_small, "such")],
)
def test_a_reader_that_fails_on_true_images(make_table, word, reader):
    """It is said before anything is scored: the model is not called."""

    def fail(factors: np.ndarray) -> np.ndarray:
        raise AssertionError("the model was called")

    with pytest.raises(tfcomp.ConfigError, match=word) as caught:
        tfcomp.evaluate(fail, make_table(), reader=reader)
    assert "\n" not in str(caught.value)


SPRITES = (
    "--dataset=sprites --model=mlp --encoding=one_hot --grid_size=16 "
    "--sprite_sizes=3,3,4,4,4"
).split()


def make(region: str, *flags: str) -> Dataset:
    return make_dataset(parse_config([*SPRITES, f"--region={region}", *flags]))


@pytest.fixture(scope="module")
def diagonal() -> Dataset:
    return make("wiedemer:diagonal:.4")


def compute_r2(images: np.ndarray, truth: np.ndarray) -> float:
    """R² about the mean true image, by its definition."""
    error = np.square(images - truth).sum()
    from_mean = truth - truth.mean(axis=0)
    return 1 - error / np.square(from_mean).sum()


def score(
    dataset: Dataset,
    images: np.ndarray,
    certificate=None,
) -> dict[str, float | None]:
    evaluation = Evaluation(images, dataset.grid_images, {})
    return references.score_certified(dataset, evaluation, certificate)


def test_r2_by_its_definition(diagonal, rng):
    truth = diagonal.grid_images
    is_ood = diagonal.splits.is_ood
    noisy = truth + 0.1 * rng.normal(size=truth.shape)

    perfect = score(diagonal, truth)
    r2 = score(diagonal, noisy)
    broken = score(diagonal, truth * np.nan)

    expected = compute_r2(noisy[is_ood], truth[is_ood])
    assert perfect == {"id": 1, "ood": 1}
    assert r2["ood"] == approx(expected)
    assert broken == {"id": None, "ood": None}


def test_equal_images_have_no_r2(rng):
    """The mean of float32 numbers may differ from them by rounding."""
    images = np.full((9, 4, 4), 0.1, np.float32)
    images[:2] = rng.random((2, 4, 4))
    classes = np.arange(9)[:, None]
    table = tfcomp.FactorTable(images, classes)
    dataset = tfcomp.evaluate(table.draw, table, "factor_0:2-8").dataset

    r2 = score(dataset, dataset.grid_images + 0.1)

    assert r2["ood"] is None
    assert r2["id"] is not None


def test_errors_count_where_they_are(diagonal):
    """Wrong on others alone: certified 1, others below, ood between."""
    certificate = certify_dataset(diagonal)[1]
    images = diagonal.grid_images.copy()
    images[diagonal.splits.is_ood & ~certificate.certified] = 0

    r2 = score(diagonal, images, certificate)

    assert r2["id"] == 1
    assert r2["certified"] == 1
    assert r2["others"] < 0
    assert 0 < r2["ood"] < 1


def test_references_equal_their_definition():
    """By loops over combinations: the mean over all values of a factor."""
    region = "wiedemer:diagonal:.4"
    dataset = tfcomp.evaluate(TABLE.draw, TABLE, region).dataset
    splits = dataset.splits
    truth = dataset.grid_images

    scores = references.score_references(dataset, truth)

    assert scores["nearest_id"]["id_r2"] == approx(1)
    assert 0.5 < scores["additive"]["id_r2"] < 1
    held_out = truth[splits.is_ood]
    for column, factor in enumerate(dataset.space):
        points = splits.grid[splits.is_ood].copy()
        images = []
        for value in factor.values():
            points[:, column] = value
            images.append(dataset.render_array(points))
        mean = np.mean(images, axis=0)
        expected = compute_r2(mean, held_out)
        r2 = scores[f"mean_over_{factor.name}"]
        assert r2["ood_r2"] == approx(expected, abs=1e-6)
        assert "id" not in r2


def test_a_split_where_only_the_ellipse_turns():
    """The mean over turns has .96, half turns .93: above many decoders."""
    dataset = make("wiedemer:orthogonal", "--sprite_sizes=3,2,4,2,2")

    scores = references.score_references(dataset, dataset.grid_images)

    mean = scores["mean_over_orientation"]
    half = scores["modulo_orientation"]
    listed = list(list_references(scores))
    assert mean["ood_r2"] == approx(0.96, 5e-3)
    assert half["ood_r2"] == approx(0.93, 5e-3)
    assert listed[2] == "mean_over_orientation"
    assert "0.96" in describe_baselines(scores)

    # Half of the turns of hearts: the squares and ellipses are the same.
    ignorant = dict(references.list_ignorant(dataset))
    (points,) = ignorant["modulo_orientation"]
    turns = points[:, 2]
    held_out = dataset.splits.grid[dataset.splits.is_ood]
    angles = held_out[:, 2]
    assert set(turns) < set(angles)
    np.testing.assert_array_equal(turns % 180, angles % 180)


def test_nothing_is_ignored_that_no_image_shows():
    """Squares and ellipses at 0 and 180 degrees: no reference is the truth."""
    dataset = make("random:0.2", "--grid_size=8", "--sprite_sizes=2,2,2,3,3")

    scores = references.score_references(dataset, dataset.grid_images)

    assert "mean_over_shape" in scores
    assert "mean_over_x" in scores
    assert "mean_over_orientation" not in scores
    assert "modulo_orientation" not in scores


def test_combinations_that_do_not_exist_have_none(diagonal):
    """Held-out squares, which stand for all shapes, are missing."""
    assert "mean_over_shape" in dict(references.list_ignorant(diagonal))
    every = diagonal.splits.all
    is_first_shape = every.factors[:, 0] == every.factors[0, 0]
    existing = every[~every.is_ood | ~is_first_shape]
    splits = dataclasses.replace(
        diagonal.splits,
        points=existing,
        existing=existing,
    )

    lacking = dataclasses.replace(diagonal, splits=splits)

    assert "mean_over_shape" not in dict(references.list_ignorant(lacking))
