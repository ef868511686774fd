"""Figures of tuning: what is drawn where."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tfcomp.datasets.factors import Factor
from tfcomp.datasets.grid_maps import GridMap, Plane
from tfcomp.figures.exhibits import figure_to_png
from tfcomp.figures.tuning_plots import draw_index_distribution, draw_tuning

MAPS = np.arange(30.0).reshape(2, 5, 3)  # [k, nx, ny]
MASK = np.isin(MAPS[0], [4, 7])  # x = 1 and 2, y = 1


def draw(
    maps: np.ndarray, mask: np.ndarray | None = None, title: str = ""
) -> Figure:
    sides = zip("xy", maps.shape[1:], strict=True)
    factors = tuple(Factor(f, n, 0.0, float(n), "px") for f, n in sides)
    units = {
        f"unit {i}": GridMap(unit, factors, mask) for i, unit in enumerate(maps)
    }
    plane = Plane(factors, (slice(None), slice(None)), "")
    return draw_tuning(units, plane, title=title)


def get_rows(figure: Figure, count: int) -> np.ndarray:
    return np.reshape(figure.axes[: 3 * count], (count, 3))


def test_rows_hold_a_map_and_both_marginals() -> None:
    figure = draw(MAPS, mask=MASK, title="stage_0")
    for unit, row in enumerate(get_rows(figure, 2)):
        image = row[0].images[0]
        np.testing.assert_array_equal(image.get_array(), MAPS[unit].T)
        assert image.origin == "lower"
        assert row[0].get_title() == f"unit {unit}"
        assert image.get_clim() == (MAPS[unit].min(), MAPS[unit].max())
        for axes, axis in ((row[1], 1), (row[2], 0)):
            x, y = axes.lines[0].get_data()
            np.testing.assert_array_equal(y, MAPS[unit].mean(axis=axis))
            np.testing.assert_array_equal(x, np.arange(len(y)))
        assert row[1].get_ylim() == row[2].get_ylim()
    top, last = get_rows(figure, 2)
    labels = [axes.get_xlabel() for axes in last]
    assert labels == ["x (px)", "x (px)", "y (px)"]
    assert [a.get_title() for a in top[1:]] == ["mean over y", "mean over x"]
    assert figure.get_suptitle() == "stage_0"


def test_distribution_counts_units_and_shows_the_dead() -> None:
    values = {
        "stripes": np.full(40, 1.0),
        "mixed": np.array([0.1, 0.1, 0.3, 0.9, np.nan, np.nan, np.nan, np.nan]),
        "dead": np.full(5, np.nan),
    }
    figure = draw_index_distribution(values, label="index")
    (axes,) = figure.axes
    bars = np.array([bar.get_width() for bar in axes.patches]).reshape(3, -1)
    assert bars[0, :-1].sum() == 0 and bars[0, -1] > 0
    assert np.count_nonzero(bars[1]) == 3
    widest = bars.max(axis=1)
    np.testing.assert_allclose(widest, [widest[0], bars[1].sum() / 2, 0])
    assert widest[0] == pytest.approx(widest[1])
    means, medians = axes.lines
    np.testing.assert_allclose(means.get_data(), [[0, 1], [1.0, 0.35]])
    np.testing.assert_allclose(medians.get_data(), [[0, 1], [1.0, 0.2]])
    assert [t.get_text() for t in axes.texts] == ["50% dead", "100% dead"]
    names = [t.get_text() for t in axes.get_xticklabels()]
    assert names == list(values)
    assert figure_to_png(figure)
