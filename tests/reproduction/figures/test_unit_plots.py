"""Tuning of units: a map, and a mean over each factor."""

import numpy as np

from reproduction.figures.unit_plots import draw_tuning
from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap, Plane

FACTORS = (Factor("x", 5, 0.0, 4.0, "px"), Factor("y", 3, 0.0, 2.0, "px"))
VALUES = np.arange(15.0).reshape(5, 3)  # [nx, ny]


def test_rows_of_units_hold_a_map_and_both_marginals() -> None:
    mask = np.isin(VALUES, [4, 7, 10])
    units = {
        name: GridMap(VALUES + shift, FACTORS, mask)
        for name, shift in (("unit 0", 0), ("unit 1", 15))
    }
    plane = Plane(FACTORS, (slice(None), slice(None)), "")

    figure = draw_tuning(units, plane, title="stage_0")

    rows = np.reshape(figure.axes[:6], (2, 3))
    for (name, unit), row in zip(units.items(), rows, strict=True):
        assert row[0].get_title() == name
        image = row[0].images[0]
        np.testing.assert_array_equal(image.get_array(), unit.values.T)
        over_y = row[1].lines[0].get_ydata()
        over_x = row[2].lines[0].get_ydata()
        np.testing.assert_array_equal(over_y, unit.values.mean(axis=1))
        np.testing.assert_array_equal(over_x, unit.values.mean(axis=0))
        assert row[1].get_ylim() == row[2].get_ylim()
    labels = [axes.get_xlabel() for axes in rows[1]]
    assert labels == ["x (px)", "x (px)", "y (px)"]
