"""What figures show: legends, titles and outlines."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def get_legend(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.texts]


def get_titles(figure: Figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes]


def get_image_axes(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.images]


def get_outline(axes: Axes) -> list:
    (lines,) = axes.collections
    return lines.get_segments()


def check_axes(axes: Axes, **expected: Any):
    """Compares properties of axes, as `xlabel`."""
    properties = axes.properties()
    for name, value in expected.items():
        assert properties[name] == value, name
