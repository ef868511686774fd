"""The figure of power laws: what is drawn, and where."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tfcomp.figures.power_law_plots import Scaling, draw_power_laws

SIZES = (16, 24, 32)


def make_scaling(**changes: object) -> Scaling:
    parts = {
        "points": [(n, k * n**2) for n in SIZES for k in (1, 2)],
        "means": [(n, 1.5 * n**2, n**2, 2 * n**2) for n in SIZES],
        "line": (1.5, 2.0),
    }
    return Scaling(**(parts | changes))


def draw(*series: Scaling) -> Figure:
    named = {f"series {i}": scaling for i, scaling in enumerate(series)}
    guides = {"linear": 1.0, "cubic": 3.0}
    return draw_power_laws(named, guides)


def find_line(figure: Figure, label: str) -> np.ndarray:
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    return lines[label].get_xydata()


def test_guides_have_their_exponents() -> None:
    figure = draw(make_scaling())
    for label, exponent in (("linear", 1), ("cubic", 3)):
        slope = np.diff(np.log(find_line(figure, label)), axis=0)[0]
        assert slope[1] / slope[0] == pytest.approx(exponent)


def test_fitted_line_and_points_are_drawn() -> None:
    axes = draw(make_scaling()).axes[0]
    data = [line.get_xydata() for line in axes.lines]
    line = [[16, 1.5 * 16**2], [32, 1.5 * 32**2]]
    assert any(len(d) == 2 and np.allclose(d, line) for d in data)
    points = next(d for d in data if len(d) == 6)
    assert sorted(points[:, 1]) == sorted(
        k * n**2 for n in SIZES for k in (1, 2)
    )
    # Repeats stand side by side, at most 1 % from their size.
    assert len(set(points[:, 0])) == 6
    assert np.abs(points[:, 0] / np.repeat(SIZES, 2) - 1).max() < 0.01


def test_long_interval_does_not_hide_the_points() -> None:
    means = [(n, 1.5 * n**2, 1e-9, 1e9) for n in SIZES]
    low, high = draw(make_scaling(means=means)).axes[0].get_ylim()
    assert 50 < low < 16**2 and 2 * 32**2 < high < 1e4
