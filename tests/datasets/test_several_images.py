"""Several images of a combination, continuous and correlated factors."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import tfcomp
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.batches import (
    make_batches,
    make_row_batches,
)
from tfcomp.datasets.solvable import (
    certify,
    certify_dataset,
    measure_coverage,
)
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.views import make_map
from tfcomp.metrics.references import score_certified

RNG = np.random.default_rng(0)
GRID = np.array([*itertools.product(range(2), range(3), range(4))])
# Two of each combination, in no order, with another color of light.
CLASSES = RNG.permutation([(*row, light) for row in GRID for light in (0, 3)])
IMAGES = RNG.integers(0, 256, (48, 8, 8), np.uint8)
NAMES = ["size", "y", "x", "light"]
FACTORS = ["size", "y", "x"]
REGION = "size:#1,x:#2-3"
IS_OOD = (CLASSES[:, 0] == 1) & (CLASSES[:, 2] >= 2)
PLACES = RNG.uniform(2, 6, (400, 2)).astype(np.float32)
ROWS, COLUMNS = np.mgrid[:8, :8]
BUMPS = np.exp(
    -((COLUMNS - PLACES[:, :1, None]) ** 2 + (ROWS - PLACES[:, 1:, None]) ** 2)
    / 2
)


def make_table() -> tfcomp.FactorTable:
    return tfcomp.FactorTable(IMAGES, CLASSES, names=NAMES, factors=FACTORS)


def make_places() -> tfcomp.FactorTable:
    kinds = ["continuous", "continuous:5"]
    return tfcomp.FactorTable(BUMPS, PLACES, names=["x", "y"], kinds=kinds)


def draw(factors: np.ndarray) -> np.ndarray:
    """Any function of the factors."""
    total = np.asarray(factors, float).sum(axis=1)
    return np.sin(total[:, None, None] + np.indices((8, 8)).sum(axis=0)) ** 2


def score_slowly(
    drawn: np.ndarray,
    truth: np.ndarray,
    groups: list,
    reference: np.ndarray,
) -> dict[str, float]:
    """Means over combinations of means over images; one image is drawn each."""
    scores: dict[str, list] = {
        "mse": [],
        "sd": [],
        "floor": [],
        "blank": [],
    }
    for rows, image in zip(groups, drawn, strict=True):
        images = truth[rows]
        errors = np.square(image - images).mean(axis=(1, 2))
        scores["mse"].append(errors.mean())
        scores["sd"].append(errors.std())
        mean = images.mean(axis=0)
        scores["floor"].append(np.square(mean - images).mean())
        scores["blank"].append(np.square(reference - images).mean())
    return {name: float(np.mean(values)) for name, values in scores.items()}


def test_scores_are_means_over_images() -> None:
    found = tfcomp.evaluate(draw, make_table(), REGION)
    assert found.dataset.splits.is_complete
    truth = IMAGES / 255
    mean = truth[~IS_OOD].mean(axis=0)
    for subset, chosen in (
        ("id", ~IS_OOD),
        ("ood", IS_OOD),
    ):
        points = np.unique(CLASSES[chosen, :3], axis=0)
        groups = [
            np.flatnonzero((CLASSES[:, :3] == point).all(axis=1))
            for point in points
        ]
        assert {len(rows) for rows in groups} == {2}
        slow = score_slowly(draw(points), truth, groups, mean)
        scores = found.scores[subset]
        assert scores["mse"] == pytest.approx(slow["mse"], rel=1e-5)
        assert scores["mse_sd"] == pytest.approx(slow["sd"], rel=1e-5)
        assert scores["floor_mse"] == pytest.approx(slow["floor"], rel=1e-5)
        relative = slow["mse"] / slow["blank"]
        assert scores["relative_mse"] == pytest.approx(relative, rel=1e-5)
        variance = truth[chosen].var(axis=0).mean()
        r2 = 1 - slow["mse"] / variance
        assert scores["r2"] == pytest.approx(r2, abs=1e-5)


def test_references_and_errors_are_means_over_images() -> None:
    """No function of the factors is better than the mean of their images."""
    table = make_table()
    found = tfcomp.evaluate(table.draw, table, REGION)
    references, truth = (
        found.analysis.references,
        IMAGES / 255,
    )
    nearest, scores = (
        references["nearest_id"],
        found.scores["id"],
    )
    assert nearest["id"] == pytest.approx(scores["relative_mse"], rel=1e-5)
    assert nearest["id_r2"] == pytest.approx(scores["r2"], rel=1e-4)
    mean, held_out = (
        truth[~IS_OOD].mean(axis=0),
        truth[IS_OOD],
    )
    wrong = np.mean((held_out - mean) ** 2) / held_out.var(axis=0).mean()
    ood = references["mean_image"]["ood_r2"]
    assert ood == pytest.approx(1 - wrong, abs=1e-5)
    split = score_certified(found.dataset, found.analysis.evaluation, None)
    for subset, r2 in split.items():
        assert r2 == pytest.approx(found.scores[subset]["r2"], rel=1e-4)
    means = found.to_frame().groupby("is_ood")["mse"].mean()
    assert means[False] == pytest.approx(scores["mse"], rel=1e-5)
    assert means[True] == pytest.approx(found.scores["ood"]["mse"], rel=1e-5)


def test_combinations_of_equal_means_are_no_copies() -> None:
    """An image and its negative are gray on average, wherever the object is."""
    truth = np.zeros((16, 2, 4, 4), np.uint8)
    places = np.array([*itertools.product(range(4), range(4))])
    for pair, (x, y) in zip(truth, places, strict=True):
        pair[0, y, x] = 200
        pair[1] = 255 - pair[0]
    truth[15] = truth[0, ::-1]  # two that are equal, in another order
    classes = np.repeat(places, 2, axis=0)
    table = tfcomp.FactorTable(truth.reshape(-1, 4, 4), classes)
    found = tfcomp.evaluate(table.draw, table, "square:2-3")
    copies = found.dataset.copies
    assert copies.is_copy.nonzero()[0].tolist() == [15]
    assert copies.summary["num_copies"] == 1 and not copies.aliases


def parse(folder: Path, *flags: str) -> RunConfig:
    path = folder / "several.npz"
    np.savez(path, images=IMAGES, classes=CLASSES, names=NAMES)
    data = [
        "--dataset=table",
        f"--data={path}",
        f"--region={REGION}",
    ]
    return parse_config([*data, f"--factors={','.join(FACTORS)}", *flags])


def test_a_pass_has_each_image_once(tmp_path: Path) -> None:
    dataset = make_dataset(parse(tmp_path))
    count = int((~IS_OOD).sum())
    assert len(dataset.splits.train) == count
    batches = make_batches(dataset, count, 0, num_steps=1)
    ((factors, images),) = batches.as_numpy_iterator()
    expected = {
        (
            *row[:3].tolist(),
            np.float32(image / np.float32(255)).tobytes(),
        )
        for row, image in zip(CLASSES[~IS_OOD], IMAGES[~IS_OOD], strict=True)
    }
    found = {
        (*map(int, row), image.tobytes())
        for row, image in zip(factors, images, strict=True)
    }
    assert found == expected and len(found) == count
    few = make_dataset(parse(tmp_path, "--num_train=7"))
    assert len(few.splits.train) == 7
    with pytest.raises(
        ConfigError,
        match="num_train must be at most the 36",
    ):
        make_dataset(parse(tmp_path, "--num_train=37"))


def test_continuous_points_are_as_they_are() -> None:
    table = make_places()
    assert table.space.shape == (8, 5)
    found = tfcomp.evaluate(draw, table, "corner:4.5")
    splits = found.dataset.splits
    order = np.lexsort(PLACES.T[::-1])
    np.testing.assert_array_equal(splits.grid, PLACES[order])
    is_ood = (PLACES[order] >= 4.5).all(axis=1)
    np.testing.assert_array_equal(splits.is_ood, is_ood)
    errors = np.mean(
        (draw(PLACES[order]) - BUMPS[order]) ** 2,
        axis=(1, 2),
    )
    for subset, rows in (("id", ~is_ood), ("ood", is_ood)):
        mse = found.scores[subset]["mse"]
        assert mse == pytest.approx(errors[rows].mean(), rel=1e-5)
    assert not splits.is_complete and len(splits.train) == (~is_ood).sum()
    with pytest.raises(TableError, match="must contain the combination"):
        table.draw(PLACES[:1] + 0.1)


def test_maps_coverage_and_certificates_are_of_bins() -> None:
    table = make_places()
    dataset = tfcomp.evaluate(draw, table, "corner:4.5").dataset
    grid, is_ood = (
        dataset.splits.grid,
        dataset.splits.is_ood,
    )
    centers = [f.values() for f in table.space]
    bins = np.stack(
        [
            np.abs(column[:, None] - c).argmin(axis=1)
            for column, c in zip(grid.T, centers, strict=True)
        ],
        axis=1,
    )
    values = np.arange(400.0)
    shown = make_map(dataset, values)
    for i, j in np.ndindex(8, 5):
        inside = (bins == (i, j)).all(axis=1)
        if inside.any():
            mean = values[inside].mean()
            assert shown.values[i, j] == pytest.approx(mean)
            assert shown.mask[i, j] == is_ood[inside].any()
    slow = certify(np.unique(bins[~is_ood], axis=0), bins, 1)
    np.testing.assert_array_equal(
        certify_dataset(dataset)[1].certified,
        slow.certified,
    )
    coverage = measure_coverage(dataset)
    assert coverage["combinations"] == pytest.approx((~is_ood).mean())
    assert coverage["values"] == 1.0


def weigh_slowly(points: np.ndarray, width: float) -> np.ndarray:
    """Weights of points whose columns are from 0 to 1."""
    squares = (points[:, 0] - points[:, 1]) ** 2
    return np.exp((squares.min() - squares) / (2 * width**2))


@pytest.mark.parametrize("width", [0.05, 0.4, 0.001])
def test_correlated_factors(width: float) -> None:
    flags = [
        "--flagfile=smoke.flags",
        f"--correlation=x,y:{width}",
    ]
    if width < 0.01:  # all weights as such are 0 in float64
        flags += ["--region=diagonal:2"]
    dataset = make_dataset(parse_config(flags))
    train = dataset.splits.train
    weights = weigh_slowly(train / 11, width)
    count = weights.sum() ** 2 / (weights**2).sum()
    assert f"{count:,.1f} of {len(train)}" in dataset.notes[-1]

    num_rows = 16 * len(train)
    (rows,) = make_row_batches(dataset, num_rows, 3, num_steps=1)
    counts = np.bincount(rows.numpy(), minlength=len(train))
    expected = num_rows * weights / weights.sum()
    assert np.abs(counts - expected).max() <= 1.0
    unseen = f"; {(counts == 0).sum():,} are too rare"
    assert (unseen in dataset.notes[-1]) == (width < 0.4)
    later = make_row_batches(dataset, 10, 3, first_step=4, num_steps=1)
    np.testing.assert_array_equal(next(iter(later)), rows[40:50])
    with pytest.raises(ConfigError, match="balance"):
        make_dataset(parse_config([*flags, "--balance"]))


@pytest.mark.parametrize(
    "pair",
    ["x,z:0.4", "x,x:0.4", "x,y", "x,y:0", "x,y:-1", "x:1"],
)
def test_what_is_no_correlation(pair: str) -> None:
    flags = [
        "--flagfile=smoke.flags",
        f"--correlation={pair}",
    ]
    with pytest.raises(ConfigError, match="correlation must be a,b:0.4 for"):
        make_dataset(parse_config(flags))
