"""The figures of a sweep, with the numbers behind them.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
scores   the scores of every setting, with intervals
by_FLAG  the scores against a number that is varied, as the depth
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tfcomp.figures.curve_plots import BandCurve, draw_curve_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.statistics.measure import find_measure, list_leading
from tfcomp.statistics.setting_table import make_label
from tfcomp.sweeps.sweep_curves import QUANTITIES

_MAX_LINES = 8
MAX_UNKNOWN = 3
_MIN_POINTS = 3
# The interval of two numbers is wider than any figure of them.
MIN_SEEDS = 3


@dataclass(frozen=True)
class SweepScores:
    """The scores of a sweep.

    Attributes:
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
    """All figures that flags, scores and tables of `sweep_curves` allow."""
    exhibits = draw_lines("curves", "epoch", QUANTITIES, sweep, curves)
    stages = list_leading("stage")
    exhibits += draw_lines("layers", "stage", stages, sweep, layers)
    summary = sweep.summary[sweep.summary["mean"].notna()]
    known = list(summary["score"].unique())
    usual = list_leading("image").items()
    shown = {score: name for score, name in usual if score in known}
    names = shown or {score: score for score in known[:MAX_UNKNOWN]}
    if not names:
        return exhibits
    summary = summary[summary["score"].isin(list(names))]
    drawn = dataclasses.replace(sweep, summary=summary)
    axes = [flag for flag in sweep.flags if _is_axis(summary[flag])]
    return [
        *exhibits,
        make_score_exhibit(drawn, names),
        *(make_trend(drawn, names, flag) for flag in axes),
    ]


# Settings of different depths have different stages.
XLABELS = {"stage": "stage (0: code, 1: stage_0, ...; the last: image)"}


def draw_lines(
    name: str,
    x: str,
    quantities: Mapping[str, str],
    sweep: SweepScores,
    table: pd.DataFrame,
) -> list[Exhibit]:
    """Quantities against x; several figures if there are many lines.

    Args:
        name: File name of the figure, without what tells several apart.
        x: Column of the numbers on the horizontal axis.
        quantities: What may be in the column `quantity`, and its title.
        table: One row a setting, quantity and x.
    """
    if table.empty:
        return []
    flags = sweep.flags
    parts: dict[str, pd.DataFrame] = {"": table}
    if len(flags) > 1 and _label(table, flags).nunique() > _MAX_LINES:
        groups = table.groupby(flags[0], sort=False)
        parts = {f"{flags[0]}={value}": part for value, part in groups}
    exhibits = []
    for part, rows in parts.items():
        shown = flags[1:] if part else flags
        title = _join(sweep.title, part, *shown)
        groups = rows.groupby("quantity", sort=False)
        figure = _draw_panels(groups, quantities, x, shown, title)
        where = XLABELS.get(x, x)
        caption = (
            "Mean over seeds, with the 95 % interval of three seeds or more "
            f"and the points of two, against: {where}. {_explain(shown)}"
            + (" R² below -1 is not shown." if x == "stage" else "")
        )
        full = _slug(f"{name} {part}")
        numbers = rows.drop(columns="sd").to_dict("records")
        exhibits.append(Exhibit(full, name, caption, figure, numbers))
    return exhibits


def make_score_exhibit(sweep: SweepScores, names: Mapping[str, str]) -> Exhibit:
    """One row a setting, one panel a score of those named."""
    summary, flags = sweep.summary, sweep.flags
    labels = _label(sweep.seeds, flags)
    seeds = dict(list(sweep.seeds.groupby([labels, "score"])))
    panels: dict[str, list[ForestRow]] = {score: [] for score in names}
    rows = summary.to_dict("records")
    for label, row in zip(_label(summary, flags), rows, strict=True):
        values = seeds[label, row["score"]]["value"].tolist()
        has_interval = row["n"] >= MIN_SEEDS
        ends = (row["low"], row["high"]) if has_interval else (None, None)
        numbers = row["mean"], *ends
        panels[row["score"]].append(ForestRow(label, *numbers, values))
    figure = draw_forest(
        [
            ForestPanel(name, panels[score], is_log=_is_logarithmic(score))
            for score, name in names.items()
        ],
        title=_join(sweep.title, *flags),
        side_by_side=True,
    )
    caption = (
        "Every seed (gray), the mean (diamond) and, of three seeds or more, "
        f"its 95 % interval ({sweep.method}). {_explain(flags)}"
    )
    return Exhibit("scores", "Scores", caption, figure, rows)


def make_trend(
    sweep: SweepScores, names: Mapping[str, str], flag: str
) -> Exhibit:
    """The scores that are named against a flag that is a number.

    Lines are what the other flags tell apart.
    """
    others = [name for name in sweep.flags if name != flag]
    title = _join(sweep.title, *others)
    groups = sweep.summary.groupby("score", sort=False)
    figure = _draw_panels(groups, names, flag, others, title)
    caption = (
        "Mean over seeds and, of three seeds or more, its 95 % interval "
        f"({sweep.method}) against {flag}. {_explain(others)}"
    )
    rows = sweep.summary.to_dict("records")
    name = _slug(f"by {flag}")
    return Exhibit(name, f"Scores by {flag}", caption, figure, rows)


def _draw_panels(
    groups: Iterable[tuple[str, pd.DataFrame]],
    names: Mapping[str, str],
    x: str,
    flags: Sequence[str],
    title: str,
) -> Figure:
    """A panel for every name that there is a table for, a line a setting."""
    tables = dict(iter(groups))
    panels = {
        label: _make_lines(tables[name], x, flags)
        for name, label in names.items()
        if name in tables
    }
    found = {label: find_measure(name) for name, label in names.items()}
    floors = {label: m.floor for label, m in found.items() if m and m.floor}
    log = {label for name, label in names.items() if _is_logarithmic(name)}
    return draw_curve_panels(
        panels, xlabel=XLABELS.get(x, x), title=title, log=log, floors=floors
    )


def _is_logarithmic(name: str) -> bool:
    """Whether a score is shown on a logarithmic axis: the errors are."""
    return name.endswith(("mse", "loss"))


def _make_lines(
    table: pd.DataFrame, x: str, flags: Sequence[str]
) -> dict[str, BandCurve]:
    """A curve for every setting of the flags, with x rising."""
    curves = {}
    for label, points in table.groupby(_label(table, flags), sort=False):
        points = points.sort_values(x)
        low, high = (
            points[end].where(points["n"] >= MIN_SEEDS)
            for end in ("low", "high")
        )
        curves[label] = BandCurve(
            points[x], points["mean"], low, high, _find_pairs(points)
        )
    return curves


def _find_pairs(points: pd.DataFrame) -> np.ndarray | None:
    """The values of two seeds, [n, 2], from their mean and deviation."""
    spread = (points["sd"] / np.sqrt(2)).where(points["n"] == 2)
    if spread.isna().all():
        return None
    return np.stack([points["mean"] - spread, points["mean"] + spread], axis=1)


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    rows = table.to_dict("records")
    return pd.Series([make_label(row, flags) for row in rows], table.index)


def _is_axis(values: pd.Series) -> bool:
    """Whether the values of a flag are at least three numbers."""
    found = values.unique()
    return len(found) >= _MIN_POINTS and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in found
    )


def _join(title: str, *parts: str) -> str:
    shown = ", ".join(part for part in parts if part)
    return f"{title}: {shown}" if shown else title


def _explain(flags: Sequence[str]) -> str:
    return f"Names are values of {', '.join(flags)}." if flags else ""


def _slug(text: str) -> str:
    """A file name: letters, digits, dots and underscores."""
    return re.sub(r"[^\w.]+", "_", text).strip("_")
