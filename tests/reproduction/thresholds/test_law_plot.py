"""The picture of thresholds: points, their law, and guides."""

import numpy as np
import pandas as pd
import pytest

from reproduction.thresholds.law_plot import draw_power_laws

SIZES = (16, 24, 32)


def test_points_laws_and_guides() -> None:
    rows = []
    for n in SIZES:
        rows += [("search", n, k * n**2, None, None) for k in (1, 2)]
        # A long interval does not hide the points.
        rows.append(("mean", n, 1.5 * n**2, 1e-9, 1e9))
    names = ["mark", "grid_size", "examples", "low", "high"]
    table = pd.DataFrame(rows, columns=names).assign(line="series")
    guides = {"linear": 1.0, "cubic": 3.0}

    figure = draw_power_laws(table, {"series": (1.5, 2)}, guides)

    lines = figure.axes[0].lines
    by_label = {line.get_label(): line.get_xydata() for line in lines}
    for label, exponent in guides.items():
        x, y = np.diff(np.log(by_label[label]), axis=0)[0]
        assert y / x == pytest.approx(exponent)
    drawn = [line.get_xydata() for line in lines]
    law = [[16, 1.5 * 16**2], [32, 1.5 * 32**2]]
    assert any(len(xy) == 2 and np.allclose(xy, law) for xy in drawn)
    searches = next(xy for xy in drawn if len(xy) == 6)
    expected = sorted(k * n**2 for n in SIZES for k in (1, 2))
    assert sorted(searches[:, 1]) == expected
