"""The page about decoders, and its figure."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from tfcomp.figures.exhibits import figure_to_png, make_figure, use_own_style

TEMPLATE = Path(__file__).with_name("decoders.md")
MIN_R2 = -1.0  # the left end of the figure


def render_page(rows: pd.DataFrame, families: pd.DataFrame) -> str:
    """Renders the page in Markdown.

    Args:
        rows: The result of `judge_splits`.
        families: The result of `average_families`.
    """
    names = sorted(set(families["family"]))
    head = ["decoder", *names]
    rule = ["---"] * len(head)
    lines = [head, rule]
    for decoder in list_decoders(families):
        line = [f"`{decoder}`"]
        for family in names:
            cell = format_cell(families, family, decoder)
            line.append(cell)
        lines.append(line)

    last_line = ["best predictor without a network"]
    for family in names:
        is_family = rows["family"] == family
        splits = rows[is_family].drop_duplicates("split")
        mean = splits["predictor_r2"].mean()
        last_line.append(f"{mean:.2f}")
    lines.append(last_line)

    table_lines = []
    for line in lines:
        cells = " | ".join(line)
        table_lines.append(f"| {cells} |")
    table = "\n".join(table_lines)
    template = TEMPLATE.read_text("utf-8")
    return template.replace("{table}", table)


def list_decoders(families: pd.DataFrame) -> list[str]:
    """Lists decoders, those that compose on most splits first."""
    groups = families.groupby("decoder")
    counts = groups["composing"].sum()
    counts = counts.sort_values(ascending=False, kind="stable")
    return list(counts.index)


def format_cell(families: pd.DataFrame, family: str, decoder: str) -> str:
    """Formats R² with its interval, and on how many splits it composes.

    Args:
        families: The result of `average_families`.
        family: A family of splits.
        decoder: The name of a decoder, which may have no runs there.
    """
    is_family = families["family"] == family
    is_decoder = families["decoder"] == decoder
    matching = families[is_family & is_decoder]
    rows = matching.to_dict("records")
    if not rows:
        return ""
    (row,) = rows
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
    names = sorted(set(families["family"]))
    decoders = list_decoders(families)[::-1]
    width = 1.9 * len(names) + 1.4
    height = 0.26 * len(decoders) + 1.2

    figure = make_figure((width, height))
    grid = figure.subplots(
        ncols=len(names),
        sharey=True,
        squeeze=False,
    )
    panels = grid[0]
    for axes, family in zip(panels, names, strict=True):
        is_family = families["family"] == family
        rows = families[is_family].set_index("decoder")
        ordered = rows.reindex(decoders)
        _plot_panel(axes, ordered)
        axes.set_title(family)
    places = range(len(decoders))
    panels[0].set_yticks(places, decoders)
    figure.supxlabel("R² of held-out images; line: best predictor")
    return figure_to_png(
        figure,
        num_colors=64,
        dpi=110,
    )


def _plot_panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Plots R² with intervals, a row for each decoder."""
    num_rows = len(rows)
    r2 = rows["r2"].clip(lower=MIN_R2)
    low = rows["low"].clip(lower=MIN_R2)
    high = rows["high"].clip(lower=MIN_R2)
    below = r2 - low
    above = high - r2
    axes.errorbar(
        r2,
        range(num_rows),
        xerr=[below, above],
        fmt="o",
        markersize=4,
        color="#2166ac",
    )
    predictor_r2 = rows["predictor_r2"].mean()
    axes.axvline(predictor_r2, color="#b2182b")
    axes.axvline(
        0,
        color="#cccccc",
        zorder=0,
    )
    axes.set_xlim(MIN_R2 - 0.1, 1.1)
    axes.set_ylim(-0.6, num_rows - 0.4)
