"""Training examples needed over the size of the grid (figure 4c)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from tfcomp.figures import curve_plots, exhibits
from tfcomp.figures.exhibits import Plot

GUIDE_DASHES = ((0, (1, 2)), (0, (4, 3)), (0, (6, 2, 1, 2)))


def draw_power_laws(
    table: pd.DataFrame,
    laws: Mapping[str, tuple[float, float] | None],
    guides: Mapping[str, float],
    title: str = "",
) -> Plot:
    """Draws training examples over grid sizes on logarithmic axes.

    Args:
        table: A row for each `mark` of a `line`: each `search`, sizes at which
            it is `not reached`, and each `mean` with its interval.
        laws: The constant and the exponent of each line, if they are known.
        guides: Exponents of gray lines for comparison, by name.
        title: The title of the figure.
    """
    figure = exhibits.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(
        xscale="log",
        xlabel="grid size N (px)",
        yscale="log",
        ylabel="training examples needed",
    )
    for index, (name, law) in enumerate(laws.items()):
        _draw_series(axes, index, table[table["line"] == name], law)

    searches = table[table["mark"] != "mean"]
    sizes = searches["grid_size"]
    counts = searches["examples"]
    start = 0.6 * counts[sizes == sizes.min()].min()
    x = np.array([sizes.min(), sizes.max()], float)
    for index, (name, exponent) in enumerate(guides.items()):
        axes.plot(
            x,
            start * (x / x[0]) ** exponent,
            color="0.45",
            linestyle=GUIDE_DASHES[index % len(GUIDE_DASHES)],
            lw=1.2,
            label=name,
        )

    # Plain numbers: every size, and 1, 2, 5 times powers of ten.
    ticks = sorted(sizes.unique())
    axes.set_xticks(ticks, [f"{size:g}" for size in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if len(ticks) == 1:
        axes.set_xlim(ticks[0] / 1.5, ticks[0] * 1.5)
    # All points are shown; the interval of few repeats may leave the axes.
    axes.set_ylim(counts.min() / 2.5, counts.max() * 2)
    curve_plots.finish_axes(axes)
    return exhibits.finish_figure(figure, title, lambda: table)


def _draw_series(
    axes: Axes,
    index: int,
    table: pd.DataFrame,
    law: tuple[float, float] | None,
) -> None:
    style = curve_plots.get_line_style(index)
    color = style["color"]
    marker = style["marker"]
    large = exhibits.scale_text(7)
    linewidth = exhibits.scale_text(1.6)

    searches = table[table["mark"] == "search"]
    x, y = _spread(searches)
    size = exhibits.scale_text(4)
    axes.plot(x, y, marker, color=color, alpha=0.4, markersize=size)
    x, y = _spread(table[table["mark"] == "not reached"])
    size = exhibits.scale_text(6)
    axes.plot(x, y, "^", color=color, fillstyle="none", markersize=size)

    means = table[table["mark"] == "mean"]
    columns = ["grid_size", "examples", "low", "high"]
    for size, mean, low, high in means[columns].to_numpy(float):
        has_interval = np.isfinite([low, high]).all()
        axes.errorbar(
            size,
            mean,
            [[mean - low], [high - mean]] if has_interval else None,
            fmt=marker,
            color=color,
            markersize=large,
            capsize=3,
        )

    if law is not None:
        constant, exponent = law
        sizes = searches["grid_size"]
        ends = np.array([sizes.min(), sizes.max()])
        axes.plot(
            ends,
            constant * ends**exponent,
            color=color,
            linestyle=style["linestyle"],
            linewidth=linewidth,
        )
    # One entry of the legend has the line and its marks.
    name = table["line"].iloc[0]
    axes.plot([], [], label=name, linewidth=linewidth, ms=large, **style)


def _spread(points: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Moves repeats of one size side by side, on a log scale."""
    repeats = points.groupby("grid_size")["examples"]
    shift = repeats.cumcount() - (repeats.transform("size") - 1) / 2
    return points["grid_size"] * np.exp(0.008 * shift), points["examples"]
