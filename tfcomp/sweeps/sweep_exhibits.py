"""The figures of a sweep, with the numbers behind them.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
by_FLAG  the scores against a number that is varied, as the depth
scores   the scores of every setting, with intervals
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tfcomp.evaluation.metrics import find_metric, list_leading
from tfcomp.figures.curve_plots import BandCurve, draw_curve_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.statistics.setting_table import make_label
from tfcomp.sweeps.sweep_numbers import QUANTITIES, SweepNumbers

# Settings of different depths have different stages.
XLABELS = {"stage": "stage (0: code, 1: stage_0, ...; the last: image)"}
_MAX_LINES = 8
LOGARITHMIC = ("mse", "loss")  # how the names of errors end
MAX_UNKNOWN = 3
# The interval of two numbers is wider than any figure of them.
MIN_SEEDS = 3


def make_exhibits(sweep: SweepNumbers) -> list[Exhibit]:
    """Draws all figures that the numbers of a sweep allow."""
    stages = list_leading("stage", "stages")
    exhibits = [
        *draw_lines(sweep, sweep.curves, QUANTITIES, "epoch", "curves"),
        *draw_lines(sweep, sweep.layers, stages, "stage", "layers"),
    ]
    scores = sweep.scores[sweep.scores["mean"].notna()]
    known = list(scores["score"].unique())
    usual = {s: n for s, n in list_leading("image").items() if s in known}
    names = usual or {score: score for score in known[:MAX_UNKNOWN]}
    scores = scores[scores["score"].isin(list(names))]
    for flag in [flag for flag in sweep.flags if _is_axis(scores[flag])]:
        table = scores.rename(columns={"score": "quantity"})
        exhibits += draw_lines(sweep, table, names, flag, f"by {flag}")
    return [*exhibits, *([_draw_scores(sweep, scores, names)] if names else [])]


def draw_lines(
    sweep: SweepNumbers,
    table: pd.DataFrame,
    names: Mapping[str, str],
    x: str,
    title: str,
) -> list[Exhibit]:
    """Draws each named quantity against x, a line a setting.

    Many settings are divided among several figures, by their first flag.
    """
    if table.empty:
        return []
    flags = [flag for flag in sweep.flags if flag != x]
    parts = {"": table}
    if len(flags) > 1 and _label(table, flags).nunique() > _MAX_LINES:
        first, *flags = flags
        groups = table.groupby(first, sort=False)
        parts = {f"{first}={value}": part for value, part in groups}
    return [
        _draw_part(sweep, rows, names, x, flags, title, part)
        for part, rows in parts.items()
    ]


def _draw_part(
    sweep: SweepNumbers,
    table: pd.DataFrame,
    names: Mapping[str, str],
    x: str,
    flags: Sequence[str],
    title: str,
    part: str,
) -> Exhibit:
    where = XLABELS.get(x, x)
    panels, log, floors = {}, set(), {}
    for name, rows in table.groupby("quantity", sort=False):
        label, metric = names[str(name)], find_metric(str(name))
        panels[label] = _make_lines(rows, x, flags)
        log |= {label} if str(name).endswith(LOGARITHMIC) else set()
        if metric and metric.floor is not None:
            floors[label] = metric.floor
    figure = draw_curve_panels(
        {label: panels[label] for label in names.values() if label in panels},
        xlabel=where,
        title=_join(sweep.title, part, *flags),
        log=log,
        floors=floors,
    )
    caption = (
        "Mean over seeds and, of three seeds or more, its 95 % interval, "
        f"against: {where}. {_explain(flags)}"
        + (" R² below -1 is not shown." if x == "stage" else "")
    )
    numbers = list_rows(table.drop(columns="sd"))
    name = re.sub(r"[^\w.]+", "_", f"{title} {part}").strip("_")
    return Exhibit(name, title, caption, figure, numbers)


def _make_lines(
    table: pd.DataFrame, x: str, flags: Sequence[str]
) -> dict[str, BandCurve]:
    """Returns a curve for every setting of the flags, with x rising."""
    curves = {}
    for label, points in table.groupby(_label(table, flags), sort=False):
        points = points.sort_values(x)
        is_band = points["n"] >= MIN_SEEDS
        low, high = (points[end].where(is_band) for end in ("low", "high"))
        curves[str(label)] = BandCurve(points[x], points["mean"], low, high)
    return curves


def _draw_scores(
    sweep: SweepNumbers, table: pd.DataFrame, names: Mapping[str, str]
) -> Exhibit:
    """Draws one row a setting, and one panel a score."""
    flags, rows = sweep.flags, list_rows(table)
    labels = _label(sweep.seeds, flags)
    seeds = dict(list(sweep.seeds.groupby([labels, "score"])))
    panels: dict[str, list[ForestRow]] = {score: [] for score in names}
    for row in rows:
        label = make_label(row, flags)
        values = seeds[label, row["score"]]["value"].tolist()
        is_band = row["n"] >= MIN_SEEDS
        low, high = (row[end] if is_band else None for end in ("low", "high"))
        shown = ForestRow(label, row["mean"], low, high, values)
        panels[row["score"]].append(shown)
    drawn = [
        ForestPanel(name, panels[score], is_log=score.endswith(LOGARITHMIC))
        for score, name in names.items()
    ]
    title = _join(sweep.title, *flags)
    figure = draw_forest(drawn, title=title, side_by_side=True)
    caption = (
        "Every seed (gray), the mean (diamond) and, of three seeds or more, "
        f"its 95 % interval ({sweep.method}). {_explain(flags)}"
    )
    return Exhibit("scores", "Scores", caption, figure, rows)


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    labels = [make_label(row, flags) for row in list_rows(table)]
    return pd.Series(labels, table.index)


def list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the rows of a table, by the names of its columns."""
    rows: list[Any] = table.to_dict("records")
    return rows


def _is_axis(values: pd.Series) -> bool:
    """Returns True if the values of a flag are at least three numbers."""
    numbers = values.unique()
    return len(numbers) >= 3 and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in numbers
    )


def _join(title: str, *parts: str) -> str:
    shown = ", ".join(part for part in parts if part)
    return f"{title}: {shown}" if shown else title


def _explain(flags: Sequence[str]) -> str:
    return f"Names are values of {', '.join(flags)}." if flags else ""
