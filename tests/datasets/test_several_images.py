"""Several images of a combination, continuous and correlated factors."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pytest import approx

import tfcomp
from tests.datasets.own_tables import make_data, write_own
from tfcomp.config.errors import ConfigError
from tfcomp.datasets import Dataset
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.solvable import (
    certify,
    certify_dataset,
    measure_coverage,
)
from tfcomp.datasets.table_columns import TableError
from tfcomp.datasets.views import make_map
from tfcomp.metrics.references import list_ignorant, score_certified
from tfcomp.training.fit import make_batches, make_row_batches

RNG = np.random.default_rng(0)
GRID = np.array([*itertools.product(range(2), range(3), range(4))])
# Two of each combination, in no order, with another color of light.
POINTS = [(*point, light) for point in GRID for light in (0, 3)]
CLASSES = RNG.permutation(POINTS)
IMAGES = RNG.integers(0, 256, (48, 8, 8), np.uint8)
TRUTH = IMAGES / 255
NAMES = ["size", "y", "x", "light"]
FACTORS = ["size", "y", "x"]
REGION = "size:#1,x:#2-3"
IS_OOD = (CLASSES[:, 0] == 1) & (CLASSES[:, 2] >= 2)
MEAN = TRUTH[~IS_OOD].mean(axis=0)

PLACES = RNG.uniform(2, 6, (400, 2)).astype(np.float32)
ROWS, COLUMNS = np.mgrid[:8, :8]
X, Y = PLACES.T[:, :, None, None]
DISTANCES = np.hypot(COLUMNS - X, ROWS - Y)
BUMPS = np.exp(-(DISTANCES**2) / 2)


TABLE = tfcomp.FactorTable(
    IMAGES,
    CLASSES,
    names=NAMES,
    factors=FACTORS,
)
PLACE_TABLE = tfcomp.FactorTable(
    BUMPS,
    PLACES,
    names=["x", "y"],
    kinds=["continuous", "continuous:5"],
)


def draw(factors: np.ndarray) -> np.ndarray:
    """Any function of the factors."""
    total = np.asarray(factors, float).sum(axis=1)
    phase = total[:, None, None] + ROWS + COLUMNS
    return np.sin(phase) ** 2


def score_slowly(is_chosen: np.ndarray) -> dict[str, float]:
    """Means over combinations of means over their images."""
    rows = []
    points = np.unique(CLASSES[is_chosen, :3], axis=0)
    for point, drawn in zip(points, draw(points), strict=True):
        is_here = (CLASSES[:, :3] == point).all(axis=1)
        images = TRUTH[is_here]
        errors = np.square(drawn - images).mean(axis=(1, 2))
        floor = images.var(axis=0)
        blank = np.square(MEAN - images)
        row = [
            errors.mean(),
            errors.std(),
            floor.mean(),
            blank.mean(),
        ]
        rows.append(row)

    mse, deviation, floor, blank = np.mean(rows, axis=0)
    variance = TRUTH[is_chosen].var(axis=0).mean()
    return {
        "mse": mse,
        "mse_sd": deviation,
        "floor_mse": floor,
        "relative_mse": mse / blank,
        "r2": 1 - mse / variance,
    }


@pytest.mark.parametrize(
    "subset, is_chosen",
    [
        ("id", ~IS_OOD),
        ("ood", IS_OOD),
    ],
)
def test_scores_are_means_over_images(subset, is_chosen):
    report = tfcomp.evaluate(draw, TABLE, REGION)

    scores = report.scores[subset]
    for name, expected in score_slowly(is_chosen).items():
        assert scores[name] == approx(expected, rel=1e-4)
    assert report.dataset.splits.is_complete


def test_references_and_errors_are_means_over_images():
    """No function of the factors is better than the mean of their images."""
    held_out = TRUTH[IS_OOD]
    from_mean = np.square(held_out - MEAN)
    variance = held_out.var(axis=0)
    blank_r2 = 1 - from_mean.mean() / variance.mean()

    report = tfcomp.evaluate(TABLE.draw, TABLE, REGION)

    scores = report.scores
    analysis = report.analysis
    nearest = analysis.references["nearest_id"]
    blank = analysis.references["mean_image"]
    assert nearest["id_r2"] == approx(scores["id"]["r2"])
    assert blank["ood_r2"] == approx(blank_r2, abs=1e-5)

    certified = score_certified(report.dataset, analysis.evaluation, None)
    for subset, r2 in certified.items():
        assert r2 == approx(scores[subset]["r2"], rel=1e-4)

    frame = report.to_frame()
    mse_id, mse_ood = frame.groupby("is_ood")["mse"].mean()
    assert mse_id == approx(scores["id"]["mse"], rel=1e-5)
    assert mse_ood == approx(scores["ood"]["mse"], rel=1e-5)


def test_combinations_of_equal_means_are_no_copies():
    """An image and its negative are gray on average, wherever the object is."""
    places = np.argwhere(np.ones((4, 4)))
    images = np.zeros((16, 2, 4, 4), np.uint8)
    for pair, (x, y) in zip(images, places, strict=True):
        image, negative = pair
        image[y, x] = 200
        negative[:] = 255 - image
    images[15] = images[0, ::-1]  # two that are equal, in another order
    classes = np.repeat(places, 2, axis=0)
    table = tfcomp.FactorTable(images.reshape(-1, 4, 4), classes)

    report = tfcomp.evaluate(table.draw, table, "square:2-3")

    copies = report.dataset.copies
    assert np.flatnonzero(copies.is_copy).tolist() == [15]
    assert copies.summary["num_copies"] == 1
    assert not copies.aliases


def load_several(folder: Path, *flags: str) -> Dataset:
    path = write_own(
        folder / "several.npz",
        images=IMAGES,
        classes=CLASSES,
        names=NAMES,
    )
    line = f"--dataset=table --region={REGION} --factors={','.join(FACTORS)}"
    return make_data(line, f"--data={path}", *flags)


def join_columns(factors: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Rows of factors and pixels, sorted."""
    pixels = images.reshape(len(images), -1)
    rows = np.column_stack([factors, pixels])
    return np.unique(rows, axis=0)


def test_a_pass_has_each_image_once(tmp_path):
    dataset = load_several(tmp_path)
    num_id = len(dataset.splits.train)

    batches = make_batches(
        dataset,
        num_id,
        0,
        num_steps=1,
    )

    ((factors, images),) = batches.as_numpy_iterator()
    batch = join_columns(factors, images)
    expected = join_columns(CLASSES[~IS_OOD, :3], TRUTH[~IS_OOD])
    assert_allclose(batch, expected, rtol=1e-6)


def test_number_of_training_images(tmp_path):
    few = load_several(tmp_path, "--num_train=7")
    assert len(few.splits.train) == 7
    with pytest.raises(ConfigError, match="num_train.* 36"):
        load_several(tmp_path, "--num_train=37")


def test_continuous_points_are_as_they_are():
    order = np.lexsort(PLACES.T[::-1])
    points = PLACES[order]
    is_ood = (points >= 4.5).all(axis=1)
    difference = draw(points) - BUMPS[order]
    errors = np.square(difference).mean(axis=(1, 2))

    report = tfcomp.evaluate(draw, PLACE_TABLE, "corner:4.5")

    splits = report.dataset.splits
    assert PLACE_TABLE.space.shape == (8, 5)
    assert_array_equal(splits.grid, points)
    assert_array_equal(splits.is_ood, is_ood)
    assert not splits.is_complete
    assert len(splits.train) == (~is_ood).sum()
    mse_id = errors[~is_ood].mean()
    mse_ood = errors[is_ood].mean()
    assert report.scores["id"]["mse"] == approx(mse_id, rel=1e-5)
    assert report.scores["ood"]["mse"] == approx(mse_ood, rel=1e-5)
    with pytest.raises(TableError, match="combination"):
        PLACE_TABLE.draw(PLACES[:1] + 0.1)


def test_bounds_of_continuous_factors_are_as_given():
    """Bins are a grid for maps; points near a bin are on their own side."""
    x = [*range(8), 3.004, 3.006, 4.996, 0.004]
    columns = {
        "x": np.float32(x),
        "y": np.arange(12) % 3,
    }
    table = tfcomp.FactorTable(
        None,
        columns,
        factors=["x:continuous", "y"],
    )
    assert_array_equal(table.space["x"].values(), np.arange(8))

    region = parse_region("x:3.005-4.995|x:0.004", table.space)

    is_held_out = region.contains(table.points)
    held_out = table.points[is_held_out, 0]
    assert_allclose(held_out, [0.004, 3.006, 4], rtol=1e-6)


def test_as_many_points_as_bins_are_no_grid():
    """No image exists where a factor of a point is replaced by a bin's."""
    places = PLACES[:40]  # of 8 x 5 bins
    kinds = ["continuous", "continuous:5"]
    table = tfcomp.FactorTable(BUMPS[:40], places, kinds=kinds)

    report = tfcomp.evaluate(table.draw, table, "factor_0:4-max")

    assert report.scores["ood"]["r2"] == approx(1)
    assert not dict(list_ignorant(report.dataset))
    assert "additive" in report.analysis.references


def test_maps_coverage_and_certificates_are_of_bins():
    dataset = tfcomp.evaluate(draw, PLACE_TABLE, "corner:4.5").dataset
    is_ood = dataset.splits.is_ood
    bins = dataset.space.to_index(dataset.splits.grid)
    trained = np.unique(bins[~is_ood], axis=0)
    values = np.arange(400.0)

    grid_map = make_map(dataset, values)
    certificate = certify_dataset(dataset)[1]
    coverage = measure_coverage(dataset)

    for place in np.ndindex(8, 5):
        inside = (bins == place).all(axis=1)
        if not inside.any():
            continue
        mean = values[inside].mean()
        assert grid_map.values[place] == approx(mean)
        assert grid_map.mask[place] == is_ood[inside].any()
    expected = certify(trained, bins, 1)
    assert_array_equal(certificate.certified, expected.certified)
    assert coverage["combinations"] == approx((~is_ood).mean())
    assert coverage["values"] == 1.0


def weigh_slowly(points: np.ndarray, width: float) -> np.ndarray:
    """Weights of points whose columns are from 0 to 1."""
    x, y = points.T
    squares = (x - y) ** 2
    above = squares - squares.min()
    return np.exp(-above / (2 * width**2))


@pytest.mark.parametrize(
    "width, region",
    [
        (0.05, "square:4-7"),
        (0.4, "square:4-7"),
        (0.001, "diagonal:2"),  # all weights as such are 0 in float64
    ],
)
def test_correlated_factors(width, region):
    flags = f"smoke --correlation=x,y:{width} --region={region}"
    dataset = make_data(flags)
    num_train = len(dataset.splits.train)
    num_rows = 16 * num_train

    batches = make_row_batches(
        dataset,
        num_rows,
        3,
    )
    rows = next(batches.as_numpy_iterator())

    weights = weigh_slowly(dataset.splits.train / 11, width)
    weights /= weights.sum()
    counts = np.bincount(rows, minlength=num_train)
    assert np.abs(counts - num_rows * weights).max() <= 1.0

    note = dataset.notes[-1]
    effective = 1 / np.sum(weights**2)
    num_unseen = (counts == 0).sum()
    assert f"{effective:,.1f} of {num_train}" in note
    is_told = f"; {num_unseen:,} are too rare" in note
    assert is_told == (width < 0.4)

    later = make_row_batches(
        dataset,
        10,
        3,
        first_step=4,
    )
    assert_array_equal(next(iter(later)), rows[40:50])
    with pytest.raises(ConfigError, match="balance"):
        make_data(flags, "--balance")


@pytest.mark.parametrize(
    "pair",
    ["x,z:0.4", "x,x:0.4", "x,y", "x,y:0", "x,y:-1", "x:1"],
)
def test_what_is_no_correlation(pair):
    with pytest.raises(ConfigError, match="correlation"):
        make_data(f"smoke --correlation={pair}")
