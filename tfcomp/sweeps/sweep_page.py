"""The page of a sweep: errors of all settings, figures, comparisons.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
by_FLAG  the scores against a number that is varied, as the depth
scores   the scores of every setting, with intervals
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tfcomp.evaluation.metrics import find_metric, list_leading
from tfcomp.evaluation.verbalize import FITTED
from tfcomp.figures.curve_plots import BandCurve, draw_curve_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.forest_plots import ForestPanel, ForestRow, draw_forest
from tfcomp.report.page import Answer, Section
from tfcomp.statistics.setting_table import make_label
from tfcomp.sweeps.sweep_numbers import QUANTITIES, SweepNumbers

# The interval of two numbers is wider than any figure of them.
MIN_SEEDS = 3
MAX_LINES = 20  # settings that a figure of lines can tell apart
MAX_UNKNOWN = 3  # scores that are shown where none has a declared rank
LOGARITHMIC = ("mse", "loss")  # how the names of errors end
BAND = "Means over seeds and, of three seeds or more, 95 % intervals"
KNOWN, HELD_OUT = "id_relative_mse", "ood_relative_mse"


def make_page(sweep: SweepNumbers) -> tuple[Answer, list[Section]]:
    """Makes the first screen, and sections of figures and comparisons."""
    scores = sweep.scores[sweep.scores["mean"].notna()]
    known = list(scores["score"].unique())
    usual = {s: n for s, n in list_leading("image").items() if s in known}
    names = usual or {score: score for score in known[:MAX_UNKNOWN]}
    scores = scores[scores["score"].isin(list(names))]
    by_name = scores.rename(columns={"score": "quantity"})
    stages = list_leading("stage", "stages")
    figures = [
        *draw_lines(sweep, sweep.curves, QUANTITIES, "epoch", "curves"),
        *draw_lines(sweep, sweep.layers, stages, "stage", "layers"),
    ]
    for flag in [flag for flag in sweep.flags if _is_axis(scores[flag])]:
        figures += draw_lines(sweep, by_name, names, flag, f"by_{flag}")
    shown = [_tabulate_errors(scores, sweep.flags)]
    shown += [_draw_scores(sweep, scores, names)] if names else []
    text = "Errors by epoch, numbers of stages, scores by varied numbers."
    sections = [Section("figures", "Figures", text, figures)]
    if len(sweep.paired):
        sections.append(_compare(sweep.paired))
    return Answer(_summarize(sweep, scores), shown), sections


def draw_lines(
    sweep: SweepNumbers,
    table: pd.DataFrame,
    names: Mapping[str, str],
    x: str,
    name: str,
) -> list[Exhibit]:
    """Draws each named quantity against x, a line a setting."""
    flags = [flag for flag in sweep.flags if flag != x]
    if table.empty or _label(table, flags).nunique() > MAX_LINES:
        return []
    panels: dict[str, dict[str, BandCurve]] = {}
    floors = {}
    for quantity in [n for n in names if n in set(table["quantity"])]:
        rows = table[table["quantity"] == quantity].sort_values(x)
        panels[names[quantity]] = {
            str(label): _make_curve(points, x)
            for label, points in rows.groupby(_label(rows, flags), sort=False)
        }
        metric = find_metric(quantity)
        if metric and metric.floor is not None:
            floors[names[quantity]] = metric.floor
    figure = draw_curve_panels(
        panels,
        xlabel=x,
        title=f"{sweep.title}: {', '.join([x, *flags])}",
        log={names[n] for n in names if n.endswith(LOGARITHMIC)} & set(panels),
        floors=floors,
    )
    numbers = list_rows(table.drop(columns="sd"))
    return [Exhibit(name, name, f"{BAND}, against: {x}.", figure, numbers)]


def _make_curve(points: pd.DataFrame, x: str) -> BandCurve:
    is_band = points["n"] >= MIN_SEEDS
    low, high = (points[end].where(is_band) for end in ("low", "high"))
    return BandCurve(points[x], points["mean"], low, high)


def _draw_scores(
    sweep: SweepNumbers, table: pd.DataFrame, names: Mapping[str, str]
) -> Exhibit:
    """Draws one row a setting, and one panel a score."""
    rows = list_rows(table)
    labels = _label(sweep.seeds, sweep.flags)
    seeds = dict(list(sweep.seeds.groupby([labels, "score"])["value"]))
    panels: dict[str, list[ForestRow]] = {score: [] for score in names}
    for row in rows:
        label = make_label(row, sweep.flags)
        ends = (row["low"], row["high"])
        low, high = ends if row["n"] >= MIN_SEEDS else (None, None)
        values = seeds[label, row["score"]].tolist()
        shown = ForestRow(label, row["mean"], low, high, values)
        panels[row["score"]].append(shown)
    drawn = [
        ForestPanel(name, panels[score], is_log=score.endswith(LOGARITHMIC))
        for score, name in names.items()
    ]
    title = f"{sweep.title}: {', '.join(sweep.flags)}"
    figure = draw_forest(drawn, title=title, side_by_side=True)
    caption = f"Seeds (gray) and means (diamonds). {BAND} ({sweep.method})."
    return Exhibit("scores", "Scores", caption, figure, rows)


def _tabulate_errors(scores: pd.DataFrame, flags: Sequence[str]) -> Exhibit:
    """Makes a table of relative errors, one row a setting."""
    # A value alone says little.
    start = f"{flags[0]} " if len(flags) == 1 else ""
    table: dict[str, dict[str, str]] = {}
    for row in list_rows(scores):
        if row["score"] in (KNOWN, HELD_OUT):
            cells = table.setdefault(f"{start}{make_label(row, flags)}", {})
            cells["ID" if row["score"] == KNOWN else "OOD"] = _format(row)
    rows = [{"setting": label, **cells} for label, cells in table.items()]
    caption = f"{BAND}, of the pixel MSE divided by that of the reference."
    return Exhibit("settings", "Relative errors", caption, rows=rows)


def _format(row: Mapping[str, Any]) -> str:
    """Formats as `0.12 [0.10, 0.14]`; the mean alone of few seeds."""
    text = f"{row['mean']:.3g}"
    if row["n"] < MIN_SEEDS or row["low"] is None:
        return text
    return f"{text} [{row['low']:.3g}, {row['high']:.3g}]"


def _summarize(sweep: SweepNumbers, scores: pd.DataFrame) -> list[str]:
    """Counts trials with scores, and settings that fit their data."""
    finished = len(sweep.seeds.drop_duplicates([*sweep.flags, "seed"]))
    errors = scores[scores["score"] == KNOWN]["mean"]
    return [
        f"{finished} of {sweep.planned} trials have scores.",
        f"{(errors <= FITTED).sum()} of {len(errors)} settings fit their "
        "training data, by a mean ID relative error of at most "
        f"{100 * FITTED:.0f} %.",
    ]


def _compare(paired: pd.DataFrame) -> Section:
    """Makes the section of paired differences."""
    cells = paired.astype(object)
    rows = list_rows(cells.where(cells.notna(), None))
    p_values = [row["p_holm"] for row in rows if row["score"] == HELD_OUT]
    known = [p for p in p_values if p is not None]
    caption = (
        "Second setting less first one, at equal seeds; p_holm is corrected "
        "for the pairs of a score."
    )
    finding = (
        f"The OOD error differs in {sum(p < 0.05 for p in known)} of "
        f"{len(known)} pairs with enough seeds (p < 0.05 by Holm)."
    )
    table = Exhibit("paired", "Differences", caption, rows=rows)
    text = "Pairs of settings at equal seeds."
    return Section("paired", "Comparisons", text, [table], finding)


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    labels = [make_label(row, flags) for row in list_rows(table)]
    return pd.Series(labels, table.index, dtype=object)


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
