"""Lines through a grid with one ordered factor."""

import numpy as np

from tfcomp.datasets.factors import (
    Factor,
    FactorSpace,
    make_categories,
    make_pixel_space,
)
from tfcomp.datasets.grid_maps import find_interval, list_curves

ANGLE = Factor("angle", 6, 0.0, 360.0, periodic=True)
DIGITS = make_categories("digit", [4, 0])


def test_one_factor_is_one_curve() -> None:
    (curve,) = list_curves(FactorSpace((ANGLE,)))
    assert curve.label == "angle"
    assert curve.rows.tolist() == list(range(6))


def test_a_curve_for_every_name() -> None:
    for factors in ((DIGITS, ANGLE), (ANGLE, DIGITS)):
        space = FactorSpace(factors)
        curves = list_curves(space)
        assert [c.label for c in curves] == ["digit 0", "digit 4"]
        column = space.names.index("angle")
        for curve, digit in zip(curves, (0, 4), strict=True):
            points = space.grid()[curve.rows]
            np.testing.assert_array_equal(points[:, column], ANGLE.values())
            assert set(points[:, 1 - column]) == {digit}


def test_two_ordered_factors_have_a_map_instead() -> None:
    assert list_curves(make_pixel_space(4)) == []
    assert list_curves(FactorSpace((DIGITS,))) == []


def test_interval_of_a_gap() -> None:
    (curve,) = list_curves(FactorSpace((ANGLE,)))
    inside = np.array([0, 0, 1, 1, 1, 0])
    assert find_interval(curve, inside) == (120.0, 240.0)
    assert find_interval(curve, np.roll(inside, 3)) is None
    assert find_interval(curve, np.zeros(6)) is None
