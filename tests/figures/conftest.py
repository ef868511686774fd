"""What tests of figures look at: legends, and texts that overlap."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure


@pytest.fixture
def get_legend() -> Callable[[Figure], list[str]]:
    """Returns the texts of the legends of a figure."""
    return lambda figure: [
        text.get_text() for legend in figure.legends for text in legend.texts
    ]


@pytest.fixture
def get_outline() -> Callable[[Axes], list]:
    """Returns the segments of the one collection of lines of axes."""

    def find(axes: Axes) -> list:
        (lines,) = axes.collections
        return [tuple(map(tuple, s)) for s in lines.get_segments()]

    return find


@pytest.fixture
def assert_text_is_apart() -> Callable[[Figure], None]:
    """Checks that titles, names and legends are whole and do not overlap."""
    return check_texts


def check_texts(figure: Figure) -> None:
    figure.draw_without_rendering()
    texts = figure.texts + figure.legends
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    boxes = [t.get_window_extent() for t in texts if t.get_visible()]
    boxes = [box for box in boxes if box.width > 1 and box.height > 1]
    for index, box in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width, texts[index]
        assert box.y0 >= 0 and box.y1 <= figure.bbox.height, texts[index]
        assert not any(box.overlaps(other) for other in boxes[:index])
