"""Tables with so many factors that their grid cannot be an array."""

import itertools
import math

import numpy as np
import pytest

import tfcomp
from tests.datasets.own_tables import make_table
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import grid_maps, notes, solvable
from tfcomp.datasets.factors import (
    Factor,
    find_keys,
    make_keys,
)
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.metrics.kernel_regression import (
    fit_kernels,
    make_kernel,
)
from tfcomp.representations.scores import measure_layers

ROWS = 200
REGION = "a0:1,a1:1"


def make_classes(num_factors: int) -> np.ndarray:
    rng = np.random.default_rng(num_factors)
    return rng.integers(0, 2, (ROWS, num_factors))


def make_binary(classes: np.ndarray) -> tfcomp.FactorTable:
    names = [f"a{column}" for column in range(classes.shape[1])]
    return make_table(classes, names=names)


@pytest.mark.parametrize("num_factors", [40, 70, 312])
def test_images_and_splits_of_many_binary_factors(
    num_factors: int,
) -> None:
    classes = make_classes(num_factors)
    table = make_binary(classes)

    drawn = table.draw(classes.astype("f4"))
    np.testing.assert_allclose(drawn, table.images[..., None] / 255, rtol=1e-6)
    absent = 1 - classes  # each row differs everywhere from its own
    known = {tuple(row) for row in classes.tolist()}
    expected = [tuple(row) in known for row in absent.tolist()]
    assert (table.find_points(absent) >= 0).tolist() == expected

    config = parse_config(["--dataset=table", f"--region={REGION}"])
    dataset = make_table_dataset(config, table)
    held_out = (table.points[:, :2] == 1).all(axis=1)
    np.testing.assert_array_equal(dataset.splits.is_ood, held_out)
    assert dataset.planes == [] and dataset.known is None
    assert "combinations exist" in notes.describe_sample(dataset)


def test_keys_find_rows(rng: np.random.Generator) -> None:
    index = rng.integers(-1, 300, (50, 5))
    asked = np.concatenate([index[::3], index[::2] + 1])
    keys = np.sort(make_keys(index))
    rows = [tuple(row) for row in index.tolist()]
    expected = [tuple(row) in rows for row in asked.tolist()]
    assert (find_keys(make_keys(asked), keys) >= 0).tolist() == expected


def test_planes_are_those_of_the_whole_grid(
    rng: np.random.Generator,
) -> None:
    """Few combinations exist; all of the grid is searched as a check."""
    sizes = (3, 4, 2, 5)
    factors = [
        Factor(name, size, 0.0, size - 1.0)
        for name, size in zip("abcd", sizes, strict=True)
    ]
    grid = np.stack(np.unravel_index(np.arange(120), sizes), axis=1)
    index = grid[rng.permutation(120)[:70]]
    is_ood = rng.random(70) < 0.4
    masks = np.zeros((2, *sizes), bool)
    masks[0][tuple(index[is_ood].T)] = True
    masks[1][tuple(index[~is_ood].T)] = True

    planes = grid_maps.list_planes(factors, index, is_ood)
    for plane, pair in zip(
        planes,
        itertools.combinations(range(4), 2),
        strict=True,
    ):
        num_ood, num_id = (mask.sum(axis=pair) for mask in masks)
        others = [i for i in range(4) if i not in pair]
        place = tuple(plane.index[i] for i in others)

        def rank(at: tuple) -> tuple:
            middle = [(sizes[i] - 1) // 2 for i in others]  # noqa: B023
            steps = np.abs(np.subtract(at, middle)).sum()
            counts = num_ood[at], num_id[at]  # noqa: B023
            return min(counts), counts[0], -steps

        assert rank(place) == max(map(rank, np.ndindex(num_ood.shape)))


def test_noise_of_a_large_design_is_not_computed() -> None:
    points = np.unique(make_classes(40), axis=0)
    train = points[:150]
    asked = points[150:]
    assert solvable.measure_noise(train, asked, order=1) is not None
    # Too many pairs of factors.
    assert solvable.measure_noise(train, asked, order=2) is None


def test_kernels_of_many_factors(
    rng: np.random.Generator,
) -> None:
    """Twelve factors with a scale each would be 16 million fits."""
    rows, columns = rng.random((5, 12)), rng.random((4, 12))
    scales = rng.uniform(1, 2, 12)
    steps = (rows[:, None] - columns) / scales
    kernels = {
        "additive": np.exp(-(steps**2) / 2).mean(axis=2),
        "product": np.exp(-(steps**2).sum(axis=2) / 2),
    }
    for name, expected in kernels.items():
        found = make_kernel(name, rows, columns, tuple(scales))
        np.testing.assert_allclose(found, expected)

    classes = make_classes(12)[:60]
    is_ood = classes[:, :2].all(axis=1)
    outputs = {"sum": classes @ rng.normal(size=(12, 3))}
    fit = fit_kernels(classes, outputs, is_ood)["sum"]["additive"]
    assert len(fit.scales) == 1
    assert fit.r2_ood is not None and fit.r2_ood > 0.9


def test_embeddings_of_many_factors(
    rng: np.random.Generator,
) -> None:
    table = make_binary(make_classes(40))
    values = table.points @ rng.normal(size=(40, 8)).astype("f4")
    is_ood = (table.points[:, :2] == 1).all(axis=1)
    tables = measure_layers(
        table.space,
        table.points,
        is_ood,
        {"sum": values.astype("f4")},
    )
    given = tables["layers"][0]
    assert given["additive_r2"] == pytest.approx(1, abs=1e-4)
    assert given["pair_share"] is None
    assert len(tables["pairs"]) == 2 * math.comb(40, 2)
