"""How the data that are needed grow with the grid, and a picture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics.seed_statistics import (
    PowerLaw,
    Statistics,
    average_sizes,
    fit_power_law,
)

if TYPE_CHECKING:
    import pandas as pd

    from tfcomp.figures.exhibits import Plot


def fit_law(
    searches: pd.DataFrame,
) -> tuple[dict[int, Statistics], PowerLaw | None]:
    """Averages the examples of each grid size, and fits a power law.

    Args:
        searches: Rows of `thresholds.csv` of one kind and criterion. Those
            that never reached the target are left out.
    """
    reached = searches[searches["reached"].astype(bool)]
    means = average_sizes(
        reached["grid_size"].tolist(), reached["num_examples"].tolist()
    )
    return means, fit_power_law(means)


def plot_thresholds(searches: pd.DataFrame) -> Plot:
    """Plots the training examples needed over the size of the grid.

    Args:
        searches: Rows of `thresholds.csv` of one criterion.
    """
    from tfcomp.figures import curve_plots, exhibits

    figure = exhibits.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    for index, (kind, rows) in enumerate(searches.groupby("kind")):
        style = curve_plots.get_line_style(index)
        color = style["color"]
        marker = style["marker"]
        is_reached = rows["reached"].astype(bool)
        for shape, fill, own in (
            ("^", "none", rows[~is_reached]),
            (marker, "full", rows[is_reached]),
        ):
            axes.plot(
                own["grid_size"],
                own["num_examples"],
                shape,
                color=color,
                alpha=0.4,
                markersize=4,
                fillstyle=fill,
            )
        means, law = fit_law(rows)
        words = str(kind).replace("_", " ")
        sizes = np.array(list(means))
        counts = [mean.mean for mean in means.values()]
        (points,) = axes.plot(sizes, counts, marker, color=color, markersize=7)
        if law is not None:
            words += f": {law.describe()}"
            line = law.constant * sizes**law.slope
            axes.plot(sizes, line, color=color)
        points.set_label(words)

    # Slopes to compare with, from the smallest search.
    sizes = np.sort(searches["grid_size"].unique())
    start = searches["num_examples"].min() / 1.5  # the lower end of the axis
    linear = start * sizes / sizes[0]
    cubic = start * (sizes / sizes[0]) ** 3
    axes.plot(sizes, linear, ":", color="0.45", label="linear, N")
    axes.plot(sizes, cubic, "--", color="0.45", label="cubic, N³")

    axes.set(xlabel="grid size N (px)", ylabel="training examples needed")
    curve_plots.set_log_scale(axes, searches["num_examples"])
    axes.set_xscale("log")
    axes.set_xticks(sizes, map(str, sizes))
    axes.minorticks_off()
    curve_plots.finish_axes(axes)
    return exhibits.finish_figure(figure, "", lambda: searches)
