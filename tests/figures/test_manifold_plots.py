"""Figures of manifolds: points, colors, and the marked gap."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.collections import LineCollection
from matplotlib.collections import PathCollection

from tfcomp.figures import draw_manifolds
from tfcomp.figures import figure_to_png

NUM_POINTS = 12
NAMES = ["x (px)", "angle (deg)"]
LABELS = {"factor_names": NAMES, "periodic": [False, True]}
ONE_LABEL = {"factor_names": NAMES[:1], "periodic": [False]}


@pytest.fixture
def embeddings() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {f"stage_{i}": rng.normal(size=(NUM_POINTS, 2)) for i in range(3)}


@pytest.fixture
def factors() -> np.ndarray:
    values = np.arange(NUM_POINTS, dtype=float)
    return np.stack([values, 30 * values[::-1]], axis=1)


@pytest.fixture
def is_ood() -> np.ndarray:
    return np.isin(np.arange(NUM_POINTS), [4, 5, 6])


def test_a_row_of_panels_per_factor(
    embeddings: dict,
    factors: np.ndarray,
    is_ood: np.ndarray,
    get_legend: Callable,
) -> None:
    figure = draw_manifolds(embeddings, factors, is_ood, **LABELS)
    panels = np.reshape(figure.axes[:6], (2, 3))
    assert [axes.get_title() for axes in panels[0]] == list(embeddings)
    for row, factor, cmap in zip(
        panels, factors.T, ("viridis", "twilight"), strict=True
    ):
        for axes, points in zip(row, embeddings.values(), strict=True):
            drawn = [c for c in axes.collections if len(c.get_offsets())]
            for scatter, rows in zip(drawn, (~is_ood, is_ood), strict=True):
                np.testing.assert_array_equal(
                    scatter.get_offsets(), points[rows]
                )
                period = factor.max() + (30 if cmap == "twilight" else 0)
                expected = colormaps[cmap](factor[rows] / period)
                np.testing.assert_allclose(scatter.get_facecolor(), expected)
    bars = figure.axes[6:]
    assert [axes.get_ylabel() for axes in bars] == NAMES
    assert get_legend(figure) == ["training region", "held-out region"]


def test_dead_stages_say_so(
    embeddings: dict, factors: np.ndarray, is_ood: np.ndarray
) -> None:
    embeddings["dead"] = np.full((NUM_POINTS, 2), np.nan)
    for figure in (
        draw_manifolds(embeddings, factors, is_ood, **LABELS),
        draw_manifolds(embeddings, factors[:, :1], is_ood, **ONE_LABEL),
    ):
        texts = [[t.get_text() for t in a.texts] for a in figure.axes[:4]]
        assert texts == [[], [], [], ["no variance"]]
        assert figure_to_png(figure)


@pytest.mark.parametrize("periodic", [False, True])
def test_curves_connect_neighbours_and_mark_the_gap(
    embeddings: dict,
    factors: np.ndarray,
    is_ood: np.ndarray,
    periodic: bool,
    get_legend: Callable,
) -> None:
    figure = draw_manifolds(
        embeddings,
        factors[:, :1],
        is_ood,
        factor_names=NAMES[:1],
        periodic=[periodic],
    )
    for axes, points in zip(figure.axes, embeddings.values(), strict=False):
        gap, curve = (
            c for c in axes.collections if isinstance(c, LineCollection)
        )
        steps = list(zip(points, np.roll(points, -1, axis=0), strict=True))
        expected = steps if periodic else steps[:-1]
        np.testing.assert_array_equal(curve.get_segments(), expected)
        # From the last point before the gap to the first one after it.
        np.testing.assert_array_equal(gap.get_segments(), steps[3:7])
        (dots,) = (c for c in axes.collections if isinstance(c, PathCollection))
        np.testing.assert_array_equal(dots.get_offsets(), points)
        low, high = axes.get_xlim()
        assert low < points[:, 0].min() and points[:, 0].max() < high
    assert get_legend(figure) == ["held-out region"]
    assert figure.axes[-1].get_ylabel() == "x (px)"


@pytest.mark.parametrize("num_factors", [1, 2])
def test_many_stages_take_several_rows(
    factors: np.ndarray, is_ood: np.ndarray, num_factors: int
) -> None:
    points = np.random.default_rng(0).normal(size=(NUM_POINTS, 2))
    figure = draw_manifolds(
        {f"stage_{i}": points for i in range(7)},
        factors[:, :num_factors],
        ~is_ood & is_ood,
        factor_names=NAMES[:num_factors],
        periodic=[False] * num_factors,
    )
    panels = figure.axes[: 7 * num_factors]
    assert len(figure.axes) == 7 * num_factors + num_factors
    assert [axes.get_title() for axes in panels[:7]] == [
        f"stage_{i}" for i in range(7)
    ]
    tops = {round(axes.get_position().y0, 3) for axes in panels}
    assert len(tops) == 2 * num_factors
    assert bool(figure.legends) == (num_factors > 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embeddings": {}}, "embeddings must have"),
        ({"embeddings": {"a": np.zeros((12, 3))}}, "embeddings must have"),
        ({"factor_names": NAMES[:1]}, "factors must have shape"),
        ({"is_ood": np.zeros(11, bool)}, "is_ood must have shape"),
    ],
)
def test_shapes_must_fit(
    embeddings: dict,
    factors: np.ndarray,
    is_ood: np.ndarray,
    changes: dict,
    message: str,
) -> None:
    points = {"embeddings": embeddings, "factors": factors, "is_ood": is_ood}
    with pytest.raises(ValueError, match=message):
        draw_manifolds(**(points | LABELS | changes))
