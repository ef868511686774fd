"""The page about decoders, and its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

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
    lines = [["decoder", *names], ["---"] * (len(names) + 1)]
    for decoder in list_decoders(families):
        cells = [format_cell(families, family, decoder) for family in names]
        lines.append([f"`{decoder}`", *cells])
    bounds = []
    for family in names:
        splits = rows[rows["family"] == family].drop_duplicates("split")
        bounds.append(f"{splits['predictor_r2'].mean():.2f}")
    lines.append(["best predictor without a network", *bounds])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return TEMPLATE.read_text("utf-8").replace("{table}", table)


def list_decoders(families: pd.DataFrame) -> list[str]:
    """Lists decoders, those that compose on most splits first."""
    counts = families.groupby("decoder")["composing"].sum()
    return list(counts.sort_values(ascending=False, kind="stable").index)


def format_cell(
    families: pd.DataFrame,
    family: str,
    decoder: str,
) -> str:
    """Formats R² with its interval, and on how many splits it composes."""
    is_asked = (families["family"] == family) & (families["decoder"] == decoder)
    if not is_asked.any():
        return ""
    row = families[is_asked].iloc[0]
    count = f"{row['composing']}/{row['splits']}"
    if pd.isna(row["low"]):
        return f"–; {count}"
    interval = f"[{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row['r2']:.2f} {interval}; {count}"


@use_own_style()
def plot_families(families: pd.DataFrame) -> bytes:
    """Plots R² of decoders, a panel for each family, as a PNG file.

    Args:
        families: The result of `average_families`.
    """
    names = sorted(set(families["family"]))
    decoders = list_decoders(families)[::-1]
    size = (1.9 * len(names) + 1.4, 0.26 * len(decoders) + 1.2)
    figure = make_figure(size, layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, family in zip(panels, names, strict=True):
        own = families[families["family"] == family]
        own = own.set_index("decoder").reindex(decoders)
        _plot_panel(axes, own)
        axes.set_title(family)
    panels[0].set_yticks(range(len(decoders)), decoders)
    figure.supxlabel("R² of held-out images; line: best predictor")
    return figure_to_png(figure, num_colors=64, dpi=110)


def _plot_panel(axes: Any, own: pd.DataFrame) -> None:
    places = range(len(own))
    r2 = own["r2"].clip(lower=MIN_R2)
    low = own["low"].clip(lower=MIN_R2)
    high = own["high"].clip(lower=MIN_R2)
    axes.errorbar(
        r2,
        places,
        xerr=[r2 - low, high - r2],
        fmt="o",
        markersize=4,
        color="#2166ac",
    )
    axes.axvline(own["predictor_r2"].mean(), color="#b2182b")
    axes.axvline(
        0,
        color="#cccccc",
        zorder=0,
    )
    axes.set_xlim(MIN_R2 - 0.1, 1.1)
    axes.set_ylim(-0.6, len(own) - 0.4)
