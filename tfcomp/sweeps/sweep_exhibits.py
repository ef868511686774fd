"""The figures of a sweep, with the numbers behind them.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
scores   the scores of every setting, with intervals
by_FLAG  the scores against a number that is varied, as the depth
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tfcomp.evaluation.metrics import find_limits, find_metric, list_leading
from tfcomp.figures.curve_plots import BandCurve, draw_curve_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.statistics.seed_statistics import stack_scores, summarize
from tfcomp.statistics.setting_table import make_label
from tfcomp.storage.run_folder import HISTORY_FILE
from tfcomp.sweeps.grid import Trial
from tfcomp.training.history import read_history

# What TensorBoard calls it, and what a figure does.
QUANTITIES = {
    "train/loss": "training loss",
    "id/relative_mse": "ID error (relative MSE)",
    "ood/relative_mse": "OOD error (relative MSE)",
}
# Settings of different depths have different stages.
XLABELS = {"stage": "stage (0: code, 1: stage_0, ...; the last: image)"}
# Points of a curve; those of all trials together take some 100 MB.
_MAX_POINTS, _MIN_POINTS, _MAX_ROWS = 200, 10, 10**5
_MAX_LINES = 8
LOGARITHMIC = ("mse", "loss")  # how the names of errors end
MAX_UNKNOWN = 3
# The interval of two numbers is wider than any figure of them.
MIN_SEEDS = 3
Names = Mapping[str, str]  # what figures call scores and quantities


@dataclass(frozen=True)
class SweepScores:
    """The scores of a sweep, seed by seed and summarized."""

    title: str
    flags: Sequence[str]  # that tell its settings apart
    seeds: pd.DataFrame  # what `sweep_tables.tabulate_scores` gives
    summary: pd.DataFrame  # by setting and score
    method: str  # how the intervals of the summary were made


def summarize_curves(trials: Sequence[Trial]) -> pd.DataFrame:
    """One row a setting, quantity and epoch: mean, sd, low, high (95 %), n."""
    most = min(_MAX_POINTS, max(_MIN_POINTS, _MAX_ROWS // len(trials)))
    rows = [
        (*trial.setting.values(), *point)
        for trial in trials
        for point in _read_curves(trial, most)
    ]
    keys = [*trials[0].setting, "quantity", "epoch"]
    table = pd.DataFrame(rows, columns=[*keys, "value"])
    return summarize(table, keys, find_limits) if rows else table


def _read_curves(trial: Trial, most: int) -> Iterator[tuple[str, int, float]]:
    """The quantity, epoch and value of every point."""
    history = read_history(trial.path / HISTORY_FILE)
    for tag in QUANTITIES:
        points = [(e, row[tag]) for e, row in history.items() if tag in row]
        for index in choose_points(len(points), most):
            yield tag, *points[index]


def choose_points(count: int, most: int) -> np.ndarray:
    """At most `most` of the points, evenly, with the first and the last."""
    chosen = np.linspace(0, count - 1, min(count, most))
    return chosen.round().astype(int)


def summarize_layers(table: pd.DataFrame, flags: Sequence[str]) -> pd.DataFrame:
    """The same for each stage, of what `sweep_tables.tabulate_layers` gives."""
    if table.empty:
        return table
    found = [name for name in list_leading("stage", "stages") if name in table]
    keys = [*flags, "position"]
    numbers = stack_scores(table, keys, found).dropna(subset="value")
    numbers = numbers.rename(columns={"score": "quantity", "position": "stage"})
    return summarize(numbers, [*flags, "quantity", "stage"], find_limits)


def make_exhibits(
    sweep: SweepScores, curves: pd.DataFrame, layers: pd.DataFrame
) -> list[Exhibit]:
    """All figures that scores, curves and layers, summarized, allow."""
    exhibits = draw_lines("curves", "epoch", QUANTITIES, sweep, curves)
    stages = list_leading("stage", "stages")
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


def draw_lines(
    name: str,
    x: str,
    quantities: Names,
    sweep: SweepScores,
    table: pd.DataFrame,
) -> list[Exhibit]:
    """The quantities of a table, one row a setting and x, against x."""
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
        tables = dict(iter(rows.groupby("quantity", sort=False)))
        figure = _draw_panels(tables, quantities, x, shown, title)
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


def make_score_exhibit(sweep: SweepScores, names: Names) -> Exhibit:
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
        shown = ForestRow(label, row["mean"], *ends, values)
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


def make_trend(sweep: SweepScores, names: Names, flag: str) -> Exhibit:
    """The scores against a flag that is a number, a line for the others."""
    others = [name for name in sweep.flags if name != flag]
    title = _join(sweep.title, *others)
    tables = dict(iter(sweep.summary.groupby("score", sort=False)))
    figure = _draw_panels(tables, names, flag, others, title)
    caption = (
        "Mean over seeds and, of three seeds or more, its 95 % interval "
        f"({sweep.method}) against {flag}. {_explain(others)}"
    )
    rows, name = sweep.summary.to_dict("records"), _slug(f"by {flag}")
    return Exhibit(name, f"Scores by {flag}", caption, figure, rows)


def _draw_panels(
    tables: Mapping[str, pd.DataFrame],
    names: Names,
    x: str,
    flags: Sequence[str],
    title: str,
) -> Figure:
    """A panel for every name that there is a table for, a line a setting."""
    panels = {
        label: _make_lines(tables[name], x, flags)
        for name, label in names.items()
        if name in tables
    }
    found = {label: find_metric(name) for name, label in names.items()}
    floors = {label: m.floor for label, m in found.items() if m and m.floor}
    log = {label for n, label in names.items() if n.endswith(LOGARITHMIC)}
    return draw_curve_panels(
        panels, xlabel=XLABELS.get(x, x), title=title, log=log, floors=floors
    )


def _make_lines(
    table: pd.DataFrame, x: str, flags: Sequence[str]
) -> dict[str, BandCurve]:
    """A curve for every setting of the flags, with x rising."""
    curves = {}
    for label, points in table.groupby(_label(table, flags), sort=False):
        points = points.sort_values(x)
        mean, is_band = points["mean"], points["n"] >= MIN_SEEDS
        ends = [points[end].where(is_band) for end in ("low", "high")]
        # The values of two seeds, [n, 2], from their mean and deviation.
        spread = (points["sd"] / np.sqrt(2)).where(points["n"] == 2)
        pairs = None
        if not spread.isna().all():
            pairs = np.stack([mean - spread, mean + spread], axis=1)
        curves[label] = BandCurve(points[x], mean, *ends, pairs)
    return curves


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    rows = table.to_dict("records")
    return pd.Series([make_label(row, flags) for row in rows], table.index)


def _is_axis(values: pd.Series) -> bool:
    """Whether the values of a flag are at least three numbers."""
    found = values.unique()
    return len(found) >= 3 and all(
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
