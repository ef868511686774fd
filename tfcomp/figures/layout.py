"""Titles, legends and the final layout, shared by all kinds of figures."""

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

# Letters of the default font at the sizes below, with a margin: matplotlib
# neither wraps the titles of neighbouring axes nor keeps them apart.
_LETTERS_PER_INCH = 10
_TITLE_SIZE = 12
_PANEL_TITLE_SIZE = 11

_MAX_LAYOUT_STEPS = 10


def add_title(figure: Figure, title: str) -> None:
    """Writes the title of a figure, on several lines if it is long."""
    if title:
        text = _wrap(title, figure.get_figwidth())
        figure.suptitle(text, fontsize=_TITLE_SIZE)


def add_panel_title(axes: Axes, title: str, width: float) -> None:
    """Writes the title of one panel of a width in inches."""
    axes.set_title(_wrap(title, width), fontsize=_PANEL_TITLE_SIZE)


def add_legend(figure: Figure, no_value_color: str | None = None) -> None:
    """Explains below the figure what is drawn in it, every label once.

    Args:
        figure: The figure; labelled lines of all its axes are collected.
        no_value_color: Colour of the cells without a finite value, if the
            figure has any.
    """
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(
            *axes.get_legend_handles_labels(), strict=True
        ):
            handles.setdefault(label, handle)
    if no_value_color is not None:
        label = "no finite value"
        handles[label] = Patch(color=no_value_color, label=label)
    if handles:
        figure.legend(
            handles=list(handles.values()),
            loc="outside lower center",
            ncols=len(handles),
            frameon=False,
        )


def settle_layout(figure: Figure) -> None:
    """Finds the places of all axes and keeps them.

    One step of matplotlib's layout is made at every drawing, and panels of a
    fixed aspect need several: the first picture would be cramped, and no two
    of them equal.

    Args:
        figure: A finished figure; axes that are added later are not arranged.
    """
    engine = figure.get_layout_engine()
    previous = None
    for _ in range(_MAX_LAYOUT_STEPS):
        engine.execute(figure)
        bounds = np.array([axes.get_position().bounds for axes in figure.axes])
        if previous is not None and np.allclose(bounds, previous, atol=1e-4):
            break
        previous = bounds
    figure.set_layout_engine("none")


def _wrap(text: str, width: float) -> str:
    return textwrap.fill(text, max(1, int(width * _LETTERS_PER_INCH)))
