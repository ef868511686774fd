"""How the data that are needed grow with the grid, and a picture of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfcomp.statistics import seed_statistics

if TYPE_CHECKING:
    import pandas as pd

    from tfcomp.figures.exhibits import Plot


def fit_law(
    searches: pd.DataFrame,
) -> tuple[list[seed_statistics.SizeMean], seed_statistics.PowerLaw | None]:
    """Averages the examples of each grid size, and fits a power law.

    Args:
        searches: Rows of `thresholds.csv` of one kind and criterion. Those
            that never reached the target are left out.
    """
    reached = searches[searches["reached"].astype(bool)]
    means = seed_statistics.average_sizes(
        reached["grid_size"].tolist(), reached["num_examples"].tolist()
    )
    return means, seed_statistics.fit_power_law(means)


def plot_thresholds(searches: pd.DataFrame) -> Plot:
    """Plots the training examples needed over the size of the grid.

    Args:
        searches: Rows of `thresholds.csv` of one criterion.
    """
    from matplotlib.ticker import LogLocator

    from tfcomp.figures import curve_plots, exhibits

    figure = exhibits.make_figure((5.6, 4.2), layout="constrained")
    axes = figure.subplots()
    for index, (kind, rows) in enumerate(searches.groupby("kind")):
        style = curve_plots.get_line_style(index)
        color = style["color"]
        marker = style["marker"]
        for is_reached, own in rows.groupby(rows["reached"].astype(bool)):
            axes.plot(
                own["grid_size"],
                own["num_examples"],
                marker if is_reached else "^",
                color=color,
                alpha=0.4,
                markersize=4,
                fillstyle="full" if is_reached else "none",
            )
        means, law = fit_law(rows)
        words = str(kind).replace("_", " ")
        if law is not None:
            words += f": {law.describe()}"
        sizes = np.array([mean.size for mean in means])
        counts = np.array([mean.mean for mean in means])
        axes.plot(sizes, counts, marker, color=color, markersize=7, label=words)
        if law is not None:
            line = law.constant * sizes**law.slope
            axes.plot(sizes, line, color=color)

    # Slopes to compare with, from the smallest search.
    sizes = np.sort(searches["grid_size"].unique())
    start = 0.6 * searches["num_examples"].min()
    for words, exponent in {"linear, N": 1, "cubic, N³": 3}.items():
        guide = start * (sizes / sizes[0]) ** exponent
        dashes = ":" if exponent == 1 else "--"
        axes.plot(sizes, guide, dashes, color="0.45", label=words)

    axes.set(
        xscale="log",
        xlabel="grid size N (px)",
        yscale="log",
        ylabel="training examples needed",
    )
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    curve_plots.finish_axes(axes)
    return exhibits.finish_figure(figure, "", lambda: searches)
