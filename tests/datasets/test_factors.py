"""Factor spaces: order of the grid, indices, samples, serialization."""

import itertools
import json

import numpy as np
import pytest

from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_categories,
)

ANGLE = Factor("angle", 8, 0.0, 360.0, unit="deg", periodic=True)
DEPTH = Factor("depth", 5, -1.0, 1.0)
DIGIT = Factor("digit", 3, 0.0, 2.0, categorical=True)
NAMES = make_categories("names", [4, 0, 1])
MIXED = FactorSpace((ANGLE, DEPTH, DIGIT, NAMES))


def test_grid_has_the_last_factor_fastest() -> None:
    expected = list(itertools.product(*(f.values().tolist() for f in MIXED)))
    grid = MIXED.grid()
    assert grid.dtype == np.float32
    np.testing.assert_array_equal(grid, np.array(expected, np.float32))
    index = list(np.ndindex(*MIXED.shape))
    np.testing.assert_array_equal(MIXED.to_index(grid), index)


def test_to_index_is_the_nearest_and_negative_where_absent() -> None:
    depths = np.array([-1.2, -0.3, -0.2, 0.74, 0.76, 7.0])
    assert DEPTH.to_index(depths).tolist() == [
        0,
        1,
        2,
        3,
        4,
        4,
    ]  # clipped
    angles = np.array([0, 359, 360, 340, 330, -45])
    assert ANGLE.to_index(angles).tolist() == [
        0,
        0,
        0,
        0,
        7,
        7,
    ]
    nan = np.nan
    table = np.array([[90, nan, 2, nan], [nan, 1, nan, 4]], np.float32)
    index = MIXED.to_index(table)
    np.testing.assert_array_equal(index, [[2, -1, 2, -1], [-1, 4, -1, 2]])
    assert np.issubdtype(index.dtype, np.integer)


def test_levels() -> None:
    assert NAMES.values().tolist() == [0, 1, 4]
    values = np.array([4, 0, 1, np.nan, 3.5])
    assert NAMES.to_index(values).tolist() == [
        2,
        0,
        1,
        -1,
        2,
    ]
    assert MIXED.ordered == (0, 1)
    with pytest.raises(ValueError, match="levels"):
        Factor("x", 2, 0.0, 1.0, levels=(0.0, 0.5, 1.0))
    with pytest.raises(ValueError, match="must rise"):
        Factor("x", 2, 0.0, 1.0, levels=(1.0, 0.0))
    size = Factor(
        "size",
        3,
        1.0,
        9.0,
        levels=(1, 2, 9),
        names=("S", "M", "L"),
    )
    assert size.values().tolist() == [1, 2, 9]
    assert size.to_index(np.array([1.4, 5.0, 6.0])).tolist() == [0, 1, 2]
    assert [size.describe(v) for v in (1, 2.2, 9)] == [
        "S",
        "M",
        "L",
    ]
    assert DEPTH.describe(0.5) == "0.5"
    assert FactorSpace((size,)).ordered == (0,)
    space = FactorSpace((size, DEPTH))
    text = json.dumps(space.to_dict())
    assert FactorSpace.from_dict(json.loads(text)) == space
