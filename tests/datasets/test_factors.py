"""Factor spaces: order of the grid, indices, samples, serialization."""

import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tfcomp.datasets.factors import Factor, FactorSpace, make_categories

ANGLE = Factor(
    "angle",
    8,
    0.0,
    360.0,
    unit="deg",
    periodic=True,
)
DEPTH = Factor("depth", 5, -1.0, 1.0)
DIGIT = Factor(
    "digit",
    3,
    0.0,
    2.0,
    categorical=True,
)
NAMES = make_categories("names", [4, 0, 1])
MIXED = FactorSpace((ANGLE, DEPTH, DIGIT, NAMES))
SIZE = Factor(
    "size",
    3,
    1.0,
    9.0,
    levels=(1, 2, 9),
    names=("S", "M", "L"),
)
NAN = np.nan


def test_grid_has_the_last_factor_fastest():
    grid = MIXED.grid()

    values = [factor.values() for factor in MIXED]
    expected = list(itertools.product(*values))
    index = list(np.ndindex(MIXED.shape))
    assert grid.dtype == np.float32
    assert_array_equal(grid, expected)
    assert_array_equal(MIXED.to_index(grid), index)


@pytest.mark.parametrize(
    "factor, values, index",
    [
        (DEPTH, [-1.2, -0.3, -0.2, 0.74, 0.76, 7.0], [0, 1, 2, 3, 4, 4]),
        (ANGLE, [0, 359, 360, 340, 330, -45], [0, 0, 0, 0, 7, 7]),
        (NAMES, [4, 0, 1, NAN, 3.5], [2, 0, 1, -1, 2]),
        (SIZE, [1.4, 5.0, 6.0], [0, 1, 2]),
    ],
)
def test_to_index_is_the_nearest(factor, values, index):
    assert factor.to_index(np.array(values)).tolist() == index


def test_index_of_an_absent_factor_is_negative():
    table = [
        [90, NAN, 2, NAN],
        [NAN, 1, NAN, 4],
    ]
    index = MIXED.to_index(np.float32(table))
    assert index.tolist() == [
        [2, -1, 2, -1],
        [-1, 4, -1, 2],
    ]
    assert np.issubdtype(index.dtype, np.integer)


def test_levels():
    assert NAMES.values().tolist() == [0, 1, 4]
    assert SIZE.values().tolist() == [1, 2, 9]
    assert SIZE.describe(2.2) == "M"
    assert DEPTH.describe(0.5) == "0.5"
    assert MIXED.ordered == (0, 1)
    assert FactorSpace((SIZE,)).ordered == (0,)


@pytest.mark.parametrize(
    "levels, word",
    [
        ((0.0, 0.5, 1.0), "levels"),
        ((1.0, 0.0), "rise"),
    ],
)
def test_impossible_levels(levels, word):
    with pytest.raises(ValueError, match=word):
        Factor("x", 2, 0.0, 1.0, levels=levels)


def test_a_space_is_stored_as_json():
    space = FactorSpace((SIZE, DEPTH))
    text = json.dumps(space.to_dict())
    assert FactorSpace.from_dict(json.loads(text)) == space
