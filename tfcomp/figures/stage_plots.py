"""Numbers of every stage of one or several models, as lines."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tfcomp.figures.layout import add_panel_title, finish_figure
from tfcomp.figures.line_style import draw_line, finish_axes, to_numbers

Series = Mapping[str, Sequence[float | None]]

_PANEL_HEIGHT = 2.6  # inches
# Room of a stage on the x axis, in inches, and the least width of a panel
# over its height.
_STAGE_WIDTH = 0.36
_MIN_ASPECT = 1.3


def draw_stage_panels(
    panels: Mapping[str, Series],
    stages: Mapping[str, Sequence[str]],
    *,
    ylabel: str,
    title: str = "",
    errors: Mapping[str, Series] | None = None,
) -> Figure:
    """Draws numbers over the stages of models, one line a model or a score.

    Models of different depths have different stages. Every stage name has one
    place on the x axis, the same for all lines, in an order that agrees with
    all of them (see `merge_stages`): with `code, stage_0, ..., stage_6, image`
    and `code, stage_0, stage_1, image`, the shorter line begins at the left
    with the longer one and still ends at `image`. A line joins the stages that
    follow each other in its own model, whatever places lie between; its
    markers are the stages that it has. Panels share their axes, and a line of
    the same name looks the same in all of them.

    Args:
        panels: Title of a panel to its lines: the name of a line to a number
            per stage. None, NaN and infinity leave a gap.
        stages: Name of every line to the names of its stages from the input
            to the image, in all panels.
        ylabel: What the numbers are, with units.
        errors: Title of a panel to its lines: half-width of the interval
            around every number, or how far it reaches below and above it, in
            units of the numbers; drawn as a band.
    """
    errors = errors or {}
    names = list(dict.fromkeys(name for s in panels.values() for name in s))
    places = merge_stages([stages[name] for name in names])
    width = max(_MIN_ASPECT * _PANEL_HEIGHT, _STAGE_WIDTH * len(places))
    size = len(panels) * width + 1.0, _PANEL_HEIGHT + 0.6
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, series) in zip(grid, panels.items(), strict=True):
        half_widths = errors.get(panel, {})
        for name, numbers in series.items():
            xs = np.array([places.index(stage) for stage in stages[name]])
            y, band = _to_line(numbers, half_widths.get(name))
            draw_line(axes, names.index(name), xs, y, name, band)
        add_panel_title(axes, panel, width)
        _name_places(axes, places, width)
        finish_axes(axes)
    grid[0].set_ylabel(ylabel)
    finish_figure(figure, title)
    return figure


def merge_stages(lists: Sequence[Sequence[str]]) -> list[str]:
    """Orders the stages of several models so that it agrees with all of them.

    The longest list comes first. A stage that it lacks goes right before the
    stage that follows it in its own list, or to the end if none does.

    Raises:
        ValueError: If two lists disagree on an order or a name is repeated.
    """
    merged: list[str] = []
    for stages in sorted(lists, key=len, reverse=True):  # stable
        place = len(merged)
        for stage in reversed(stages):
            if stage not in merged:
                merged.insert(place, stage)
            elif merged.index(stage) < place:
                place = merged.index(stage)
            else:
                raise ValueError(
                    "stages must be in the same order for all lines, each "
                    f"once, received {[list(names) for names in lists]}."
                )
    return merged


def _to_line(
    numbers: Sequence[float | None],
    half_widths: Sequence[float | None] | None,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Returns the numbers of a line and the ends of its intervals."""
    y = to_numbers(numbers)
    if half_widths is None:
        return y, None
    error = np.asarray(half_widths)
    if error.ndim < 2:
        error = np.stack([to_numbers(error)] * 2, axis=-1)  # [stages, 2]
    below, above = error.T
    return y, (y - below, y + above)


def _name_places(axes: Axes, places: Sequence[str], width: float) -> None:
    longest = max(map(len, places), default=0)
    is_tight = longest + 1 > 10 * width / len(places)  # ten letters an inch
    slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(places)), places, **(slant if is_tight else {}))
    axes.set_xlim(-0.4, len(places) - 0.6)
