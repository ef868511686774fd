"""The figures of a sweep, with the numbers behind them.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
scores   the scores of every setting, with intervals
by_FLAG  the scores against a number that is varied, as the depth
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tfcomp.figures.curve_plots import BandCurve
from tfcomp.figures.curve_plots import draw_curve_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.forest_plots import ForestPanel
from tfcomp.figures.forest_plots import ForestRow
from tfcomp.figures.forest_plots import draw_forest
from tfcomp.statistics.setting_labels import make_label
from tfcomp.sweeps.sweep_curves import QUANTITIES

# What is drawn, where it exists, and how it is called.
SCORES = {
    "id_relative_mse": "ID relative MSE",
    "ood_relative_mse": "OOD relative MSE",
    "ood_position_accuracy": "OOD position accuracy",
}
LAYERS = {
    "factorization": "factorization score",
    "cosine_factorization": "factorization, cosine form",
    "probe_r2_ood": "linear probes, R² in OOD",
}
LOGARITHMIC = {*QUANTITIES.values(), *list(SCORES.values())[:2]}
_MAX_LINES = 8
_MIN_POINTS = 3


@dataclass(frozen=True)
class SweepScores:
    """The scores of a sweep.

    Attributes:
        title: Name of the sweep.
        flags: The flags that tell its settings apart.
        seeds: What `sweep_tables.tabulate_scores` gives.
        summary: The same, summarized by setting and score.
        method: How the intervals of the summary were made.
    """

    title: str
    flags: Sequence[str]
    seeds: pd.DataFrame
    summary: pd.DataFrame
    method: str


def make_exhibits(
    sweep: SweepScores, curves: pd.DataFrame, layers: pd.DataFrame
) -> list[Exhibit]:
    """All figures of a sweep that its flags and scores allow.

    Args:
        sweep: The scores.
        curves: What `sweep_curves.summarize_curves` gives.
        layers: What `sweep_curves.summarize_layers` gives.
    """
    title, flags, summary = sweep.title, sweep.flags, sweep.summary
    exhibits = draw_lines("curves", "epoch", QUANTITIES, title, flags, curves)
    exhibits += draw_lines("layers", "stage", LAYERS, title, flags, layers)
    summary = summary[summary["mean"].notna()]
    names = choose_scores(summary)
    if not names:
        return exhibits
    summary = summary[summary["score"].isin(list(names))]
    drawn = dataclasses.replace(sweep, summary=summary)
    axes = [flag for flag in flags if _is_axis(summary[flag])]
    return [
        *exhibits,
        make_score_exhibit(drawn, names),
        *(make_trend(drawn, names, flag) for flag in axes),
    ]


def draw_lines(
    name: str,
    x: str,
    quantities: Mapping[str, str],
    title: str,
    flags: Sequence[str],
    table: pd.DataFrame,
) -> list[Exhibit]:
    """Quantities against x; several figures if there are many lines.

    Args:
        name: File name of the figure, without what tells several apart.
        x: Column of the numbers on the horizontal axis.
        quantities: What may be in the column `quantity`, and its title.
        title: Name of the sweep.
        flags: The flags that tell its settings apart.
        table: One row a setting, quantity and x.
    """
    if table.empty:
        return []
    parts: dict[str, pd.DataFrame] = {"": table}
    if len(flags) > 1 and _label(table, flags).nunique() > _MAX_LINES:
        groups = table.groupby(flags[0], sort=False)
        parts = {f"{flags[0]}={value}": part for value, part in groups}
    exhibits = []
    for part, rows in parts.items():
        shown = flags[1:] if part else flags
        panels = {
            label: _make_lines(rows[rows["quantity"] == quantity], x, shown)
            for quantity, label in quantities.items()
        }
        figure = draw_curve_panels(
            {label: found for label, found in panels.items() if found},
            xlabel=x,
            title=_join(title, part, *shown),
            log=LOGARITHMIC,
        )
        caption = (
            "Mean over seeds and the 95 % interval of the mean (Student) "
            f"against the {x}. {_explain(shown)}"
        )
        full = _slug(f"{name} {part}")
        numbers = rows.to_dict("records")
        exhibits.append(Exhibit(full, name, caption, figure, numbers))
    return exhibits


def make_score_exhibit(sweep: SweepScores, names: Mapping[str, str]) -> Exhibit:
    """One row a setting, one panel a score of those named."""
    summary, flags = sweep.summary, sweep.flags
    labels = _label(sweep.seeds, flags)
    seeds = dict(list(sweep.seeds.groupby([labels, "score"])))
    panels: dict[str, list[ForestRow]] = {score: [] for score in names}
    labels = _label(summary, flags)
    for label, row in zip(labels, summary.to_dict("records"), strict=True):
        values = seeds[label, row["score"]]["value"].tolist()
        ends = row["low"], row["high"]
        found = ForestRow(label, row["mean"], *ends, values)
        panels[row["score"]].append(found)
    figure = draw_forest(
        [
            ForestPanel(name, panels[score], is_log=name in LOGARITHMIC)
            for score, name in names.items()
        ],
        title=_join(sweep.title, *flags),
        side_by_side=True,
    )
    caption = (
        "Every seed (grey), the mean (diamond) and its 95 % interval "
        f"({sweep.method}). {_explain(flags)}"
    )
    rows = summary.to_dict("records")
    return Exhibit("scores", "Scores", caption, figure, rows)


def make_trend(
    sweep: SweepScores, names: Mapping[str, str], flag: str
) -> Exhibit:
    """The scores that are named against a flag that is a number.

    Args:
        sweep: The scores.
        names: The scores to draw, and their titles.
        flag: The flag; lines are what the other flags tell apart.
    """
    summary = sweep.summary
    others = [name for name in sweep.flags if name != flag]
    panels = {
        name: _make_lines(summary[summary["score"] == score], flag, others)
        for score, name in names.items()
    }
    title = _join(sweep.title, *others)
    figure = draw_curve_panels(
        panels, xlabel=flag, title=title, log=LOGARITHMIC
    )
    caption = (
        f"Mean over seeds and its 95 % interval ({sweep.method}) against "
        f"{flag}. {_explain(others)}"
    )
    rows = summary.to_dict("records")
    name = _slug(f"by {flag}")
    return Exhibit(name, f"Scores by {flag}", caption, figure, rows)


def choose_scores(summary: pd.DataFrame) -> dict[str, str]:
    """The scores to draw and their names: the usual ones, or what there is."""
    known = list(summary["score"].unique())
    usual = {score: name for score, name in SCORES.items() if score in known}
    return usual or {score: score for score in known[: len(SCORES)]}


def _make_lines(
    table: pd.DataFrame, x: str, flags: Sequence[str]
) -> dict[str, BandCurve]:
    """A curve for every setting of the flags, with x rising."""
    curves = {}
    for label, points in table.groupby(_label(table, flags), sort=False):
        points = points.sort_values(x)
        columns = (points[name] for name in (x, "mean", "low", "high"))
        curves[label] = BandCurve(*columns)
    return curves


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    """The name of the setting of every row."""
    rows = table.to_dict("records")
    return pd.Series([make_label(row, flags) for row in rows], table.index)


def _is_axis(values: pd.Series) -> bool:
    """Whether the values of a flag are numbers, and three or more."""
    found = values.unique()
    return len(found) >= _MIN_POINTS and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in found
    )


def _join(title: str, *parts: str) -> str:
    """A title with what the lines are."""
    shown = ", ".join(part for part in parts if part)
    return f"{title}: {shown}" if shown else title


def _explain(flags: Sequence[str]) -> str:
    return f"Names are values of {', '.join(flags)}." if flags else ""


def _slug(text: str) -> str:
    """A file name: letters, digits, dots and underscores."""
    return re.sub(r"[^\w.]+", "_", text).strip("_")
