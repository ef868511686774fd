"""The page about decoders, and its figure."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tfcomp.figures.curve_plots import draw_forest, list_marks
from tfcomp.figures.exhibits import figure_to_png, fit_width, use_own_style
from tfcomp.statistics.seed_statistics import format_rows

TEMPLATE = Path(__file__).with_name("decoders.md")
MIN_R2 = -1.0  # the left end of the figure


def render_page(rows: pd.DataFrame, families: pd.DataFrame) -> str:
    """Renders the page in Markdown.

    Args:
        rows: The result of `judge_splits`.
        families: The result of `average_families`.
    """
    texts = families.apply(format_cell, axis=1)
    cells = families.assign(cell=texts)
    wide = cells.pivot(
        index="decoder",
        columns="family",
        values="cell",
    )
    order = list_decoders(families)
    wide = wide.loc[order]
    wide = wide.fillna("")
    wide = wide.rename(index="`{}`".format)

    splits = rows.drop_duplicates(["family", "split"])
    by_family = splits.groupby("family")
    means = by_family["predictor_r2"].mean()
    last_line = means.map("{:.2f}".format)
    wide.loc["best predictor without a network"] = last_line
    head = ["decoder", *wide.columns]
    lines = wide.reset_index().to_numpy()
    table = format_rows([head, *lines])
    table = table.rstrip()
    template = TEMPLATE.read_text("utf-8")
    return template.replace("{table}", table)


def list_decoders(families: pd.DataFrame) -> list[str]:
    """Lists decoders, those that compose on most splits first."""
    groups = families.groupby("decoder")
    counts = groups["composing"].sum()
    counts = counts.sort_values(ascending=False, kind="stable")
    return list(counts.index)


def format_cell(row: pd.Series) -> str:
    """Formats R² with its interval, and on how many splits it composes.

    Args:
        row: Of the result of `average_families`.
    """
    count = f"{row['composing']}/{row['splits']}"
    low = row["low"]
    if pd.isna(low):
        return f"–; {count}"
    interval = f"[{low:.2f}, {row['high']:.2f}]"
    return f"{row['r2']:.2f} {interval}; {count}"


@use_own_style()
def plot_families(families: pd.DataFrame) -> bytes:
    """Plots R² of decoders, a panel for each family, as a PNG file.

    Args:
        families: The result of `average_families`.
    """
    by_decoder = families.set_index("decoder", drop=False)
    ordered = by_decoder.loc[list_decoders(families)]
    ordered = ordered.sort_values("family", kind="stable")
    marks = []
    for row in ordered.to_dict("records"):
        marks += list_marks(
            row["family"],
            row["decoder"],
            seeds=[],
            mean=row["r2"],
            low=row["low"],
            high=row["high"],
        )
    with fit_width(9):
        figure = draw_forest(marks)

    predictors = families.groupby("family")["predictor_r2"].mean()
    for axes, r2 in zip(figure.axes, predictors, strict=True):
        axes.axvline(r2, color="#b2182b", lw=1)
        axes.set_xlim(MIN_R2 - 0.1, 1.1)
    return figure_to_png(
        figure,
        num_colors=64,
        dpi=150,
    )
