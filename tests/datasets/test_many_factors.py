"""Tables with so many factors that their grid cannot be an array."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.datasets.own_tables import make_space, make_table
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import grid_maps, solvable
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.metrics.interpolation import fit_kernels
from tfcomp.representations.scores import measure_layers


def make_classes(num_factors: int) -> np.ndarray:
    rng = np.random.default_rng(num_factors)
    return rng.integers(0, 2, (200, num_factors))


@pytest.mark.parametrize("num_factors", [40, 70, 312])
def test_images_and_splits_of_many_binary_factors(num_factors):
    classes = make_classes(num_factors)
    table = make_table(classes)
    config = parse_config(["--dataset=table", "--region=factor_0:1,factor_1:1"])

    dataset = make_table_dataset(config, table)

    images = table.draw(classes.astype("f4"))
    expected = table.images[..., None] / 255
    assert_allclose(images, expected, rtol=1e-6)

    opposite = 1 - classes  # each row differs everywhere from its own
    rows = classes.tolist()
    exists = [row in rows for row in opposite.tolist()]
    places = table.find_points(opposite)
    assert_array_equal(places >= 0, exists)

    held_out = (table.points[:, :2] == 1).all(axis=1)
    assert_array_equal(dataset.splits.is_ood, held_out)
    assert dataset.planes == []
    assert dataset.id_mask is None
    assert "combinations exist" in dataset.list_notes()[0]


SIZES = (3, 4, 2, 5)


def rank_planes(
    index: np.ndarray,
    is_ood: np.ndarray,
    columns: list[int],
) -> dict[tuple, tuple]:
    """Ranks all values of two factors; the highest are shown."""
    sizes = np.array(SIZES)[columns]
    middle = (sizes - 1) // 2
    ranks = {}
    for place in np.ndindex(*sizes):
        is_here = (index[:, columns] == place).all(axis=1)
        num_ood = is_ood[is_here].sum()
        num_id = is_here.sum() - num_ood
        steps = np.abs(place - middle).sum()
        ranks[place] = (min(num_ood, num_id), num_ood, -steps)
    return ranks


def test_planes_are_those_of_the_whole_grid(rng):
    """Few combinations exist; all of the grid is searched as a check."""
    grid = np.argwhere(np.ones(SIZES))
    order = rng.permutation(len(grid))
    index = grid[order[:70]]
    is_ood = rng.random(70) < 0.4
    factors = make_space(
        a=3,
        b=4,
        c=2,
        d=5,
    ).factors

    planes = grid_maps.list_planes(factors, index, is_ood)

    pairs = [*itertools.combinations(range(4), 2)]
    for plane, pair in zip(planes, pairs, strict=True):
        others = [column for column in range(4) if column not in pair]
        ranks = rank_planes(index, is_ood, others)
        place = tuple(plane.index[column] for column in others)
        assert ranks[place] == max(ranks.values())


def test_memory_of_certificates():
    """The effects of 190 pairs are added one by one."""
    points = make_classes(20)
    train = points[:150]
    tracemalloc.start()

    certificate = solvable.certify(train, points, order=2)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**27
    assert certificate.certified[:150].all()
    assert not certificate.certified[150:].any()
    assert len(certificate.images) == 50


def test_large_designs_are_not_computed(monkeypatch):
    points = np.unique(make_classes(40), axis=0)
    train = points[:150]
    asked = points[150:]
    num_codes = math.comb(40, 2) * (len(points) + len(train))
    monkeypatch.setattr(solvable, "MAX_CODES", num_codes - 1)

    assert solvable.certify(train, points, order=1) is not None
    assert solvable.certify(train, points, order=2) is None
    assert solvable.measure_noise(train, asked, order=1) is not None
    assert solvable.measure_noise(train, asked, order=2) is None


def test_products_of_parts_are_those_of_all_rows(monkeypatch, rng):
    classes = rng.integers(-1, 3, (50, 4))
    codes, num_columns = solvable.number_effects(classes, 2)
    expected = solvable.make_products(codes, num_columns)

    monkeypatch.setattr(solvable, "PART", 12)

    products = solvable.make_products(codes, num_columns)
    assert_array_equal(products, expected)


def test_kernels_of_many_factors(rng):
    """Twelve factors with a scale each would be 16 million fits."""
    classes = make_classes(12)[:60]
    is_ood = classes[:, :2].all(axis=1)
    effects = rng.normal(size=(12, 3))
    outputs = {"sum": classes @ effects}

    fits = fit_kernels(classes, outputs, is_ood)

    fit = fits["sum"]["additive"]

    assert len(fit.scales) == 1
    assert fit.r2_ood > 0.9


def test_embeddings_of_many_factors(rng):
    table = make_table(make_classes(30))
    points = table.points
    effects = rng.normal(size=(30, 8))
    sums = points @ effects
    is_ood = (points[:, :2] == 1).all(axis=1)
    layers = {"sum": sums.astype("f4")}

    tables = measure_layers(table.space, points, is_ood, layers)

    scores = tables["layers"][0]
    assert scores["additive_r2"] == pytest.approx(1, abs=1e-4)
    assert scores["pair_share"] is None
    assert len(tables["pairs"]) == 2 * math.comb(30, 2)
