"""Outlines: exact segments, and the length of the border of any mask."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.figures.looks import get_outline
from tfcomp.figures.cells import compute_outline, draw_outline


def make_rectangle(x0: float, x1: float, y0: float, y1: float) -> set[tuple]:
    return {
        ((x0, y0), (x0, y1)),
        ((x1, y0), (x1, y1)),
        ((x0, y0), (x1, y0)),
        ((x0, y1), (x1, y1)),
    }


def count_border_edges(mask: np.ndarray) -> int:
    """Counts the sides of cells that have no neighbour in the region."""
    inside = set(map(tuple, np.argwhere(mask)))
    return sum(
        (i + di, j + dj) not in inside
        for i, j in inside
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )


@pytest.mark.parametrize(
    ("shape", "parts", "rectangles"),
    [
        # The square of the paper: cells end on the pixel edges.
        ((28, 28), np.s_[6:23, 6:23], [(5.5, 22.5, 5.5, 22.5)]),
        # The first index is x.
        ((9, 5), np.s_[2:8, 1:3], [(1.5, 7.5, 0.5, 2.5)]),
        # The corner is closed at the end of the grid.
        ((6, 4), np.s_[4:, 3:], [(3.5, 5.5, 2.5, 3.5)]),
        ((6, 4), np.s_[:, :], [(-0.5, 5.5, -0.5, 3.5)]),
        # Islands in one line are not joined.
        ((3, 1), np.s_[::2], [(-0.5, 0.5, -0.5, 0.5), (1.5, 2.5, -0.5, 0.5)]),
        ((4, 4), np.s_[:0], []),
    ],
)
def test_rectangles_have_four_sides(
    shape: tuple[int, int], parts: tuple, rectangles: list
) -> None:
    mask = np.zeros(shape, bool)
    mask[parts] = True
    segments = compute_outline(mask)
    expected = [make_rectangle(*rectangle) for rectangle in rectangles]
    assert len(segments) == 4 * len(rectangles)
    assert set(segments) == set().union(*expected)


@pytest.mark.parametrize("seed", range(20))
def test_length_is_the_number_of_border_edges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random(rng.integers(1, 10, 2)) < rng.random()
    segments = compute_outline(mask)
    length = sum(x1 - x0 + y1 - y0 for (x0, y0), (x1, y1) in segments)
    assert length == count_border_edges(mask)
    for (x0, y0), (x1, y1) in segments:
        assert (x0 == x1) != (y0 == y1)
        assert {x0 % 1, y0 % 1, x1 % 1, y1 % 1} == {0.5}
    # Fully merged: no segment begins where another goes on the same line.
    vertical = [s for s in segments if s[0][0] == s[1][0]]
    horizontal = [s for s in segments if s[0][0] != s[1][0]]
    for group in (vertical, horizontal):
        assert not {s[0] for s in group} & {s[1] for s in group}


def test_drawn_outline_keeps_the_limits_of_the_axes() -> None:
    axes = Figure().subplots()
    axes.imshow(np.zeros((4, 4)), origin="lower")
    limits = axes.get_xlim(), axes.get_ylim()
    mask = np.ones((4, 4), bool)
    draw_outline(axes, mask, linewidth=3)
    axes.figure.draw_without_rendering()
    assert get_outline(axes) == compute_outline(mask)
    assert (axes.get_xlim(), axes.get_ylim()) == limits
