"""Bands of sweeps: of three seeds or more, and never of two."""

import numpy as np
import pandas as pd
import pytest

from tfcomp.sweeps.sweep_exhibits import SweepScores, draw_lines

SCORES = SweepScores("s", ["depth"], pd.DataFrame(), pd.DataFrame(), "Student")


def make_table(num_seeds: int) -> pd.DataFrame:
    """R² of probes at three stages, with the interval of few seeds."""
    return pd.DataFrame(
        {
            "depth": 2,
            "quantity": "probe_r2_ood",
            "stage": range(3),
            "mean": [0.9, 0.8, 0.7],
            "low": [-2.0, -2.0, -2.0],
            "high": [3.0, 3.0, 3.0],
            "sd": 0.1 if num_seeds > 1 else None,
            "n": num_seeds,
        }
    )


@pytest.mark.parametrize(("num_seeds", "bands"), [(1, 0), (2, 0), (3, 1)])
def test_two_seeds_have_no_band(num_seeds: int, bands: int) -> None:
    quantities = {"probe_r2_ood": "probe R²"}
    table = make_table(num_seeds)
    (exhibit,) = draw_lines("layers", "stage", quantities, SCORES, table)
    (axes,) = exhibit.figure.axes
    assert len(axes.collections) == bands
    # A band that nobody can read does not stretch the axis either.
    assert (axes.get_ylim()[1] > 1.5) == bool(bands)
    assert "of three seeds or more" in exhibit.caption
    # Two seeds lie on both sides of their mean, by their deviation over √2.
    points = [line.get_ydata() for line in axes.lines[1:]]
    expected = {2: [0.9 - 0.1 / 2**0.5, 0.9 + 0.1 / 2**0.5]}.get(num_seeds, [])
    np.testing.assert_allclose([y[0] for y in points], expected)
    # The table has them all the same.
    assert np.allclose([row["high"] for row in exhibit.rows], 3.0)
