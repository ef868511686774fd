"""The figures of a sweep, with the numbers behind them.

curves   loss, ID and OOD error against the epoch, a line a setting
layers   factorization and probes against the stage, a line a setting
scores   the scores of every setting, with intervals
by_FLAG  the scores against a number that is varied, as the depth
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tfcomp.figures import BandCurve
from tfcomp.figures import ForestPanel
from tfcomp.figures import ForestRow
from tfcomp.figures import draw_curve_panels
from tfcomp.figures import draw_forest
from tfcomp.figures.exhibits import Exhibit
from tfcomp.statistics.seed_statistics import Setting
from tfcomp.statistics.setting_labels import choose_flags
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

Rows = Sequence[dict[str, Any]]


def make_exhibits(
    title: str,
    settings: Sequence[Setting],
    summary: Rows,
    curves: Rows,
    layers: Rows,
    method: str,
) -> list[Exhibit]:
    """All figures of a sweep that its flags and scores allow.

    Args:
        title: Name of the sweep.
        settings: Its settings, with the scores of every seed.
        summary: Rows of `seed_statistics.summarize`.
        curves: Rows of `curves.tabulate_curves`.
        layers: Rows of `curves.tabulate_layers`.
        method: How the intervals of the summary were made.
    """
    flags = choose_flags([setting.flags for setting in settings])
    summary = [row for row in summary if row["mean"] is not None]
    exhibits = draw_lines("curves", "epoch", QUANTITIES, title, flags, curves)
    exhibits += draw_lines("layers", "stage", LAYERS, title, flags, layers)
    exhibits += make_score_exhibits(title, flags, settings, summary, method)
    for flag in flags:
        exhibits += make_trends(title, flag, flags, summary, method)
    return exhibits


def draw_lines(
    name: str,
    x: str,
    quantities: Mapping[str, str],
    title: str,
    flags: Sequence[str],
    rows: Rows,
) -> list[Exhibit]:
    """Quantities against x; several figures if there are many lines."""
    lines = {make_label(row, flags) for row in rows}
    split = len(flags) > 1 and len(lines) > _MAX_LINES
    groups: dict[str, list] = {}
    for row in rows:
        part = f"{flags[0]}={row[flags[0]]}" if split else ""
        groups.setdefault(part, []).append(row)
    exhibits = []
    for part, chosen in groups.items():
        shown = flags[1:] if part else flags
        panels = {
            label: _make_lines(
                [row for row in chosen if row["quantity"] == quantity],
                x,
                shown,
            )
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
        exhibits.append(Exhibit(full, name, caption, figure, chosen))
    return exhibits


def make_score_exhibits(
    title: str,
    flags: Sequence[str],
    settings: Sequence[Setting],
    summary: Rows,
    method: str,
) -> list[Exhibit]:
    """One row a setting, one panel a score."""
    numbers = {
        make_label(setting.flags, flags): setting.metrics
        for setting in settings
    }
    panels = [
        ForestPanel(
            name,
            [
                ForestRow(
                    (label := make_label(row, flags)),
                    row["mean"],
                    row["low"],
                    row["high"],
                    _list_values(numbers[label], score),
                )
                for row in summary
                if row["score"] == score
            ],
            is_log=name in LOGARITHMIC,
        )
        for score, name in choose_scores(summary).items()
    ]
    if not panels:
        return []
    figure = draw_forest(panels, title=_join(title, *flags), side_by_side=True)
    caption = (
        "Every seed (grey), the mean (diamond) and its 95 % interval "
        f"({method}). {_explain(flags)}"
    )
    rows = [row for row in summary if row["score"] in choose_scores(summary)]
    return [Exhibit("scores", "Scores", caption, figure, rows)]


def make_trends(
    title: str, flag: str, flags: Sequence[str], summary: Rows, method: str
) -> list[Exhibit]:
    """Scores against a flag, if it is a number with three values or more."""
    values = {row[flag] for row in summary}
    if len(values) < _MIN_POINTS or not all(map(_is_number, values)):
        return []
    others = [name for name in flags if name != flag]
    scores = choose_scores(summary)
    panels = {
        name: _make_lines(
            [row for row in summary if row["score"] == score], flag, others
        )
        for score, name in scores.items()
    }
    if not panels:
        return []
    figure = draw_curve_panels(
        panels, xlabel=flag, title=_join(title, *others), log=LOGARITHMIC
    )
    caption = (
        f"Mean over seeds and its 95 % interval ({method}) against {flag}. "
        f"{_explain(others)}"
    )
    rows = [row for row in summary if row["score"] in scores]
    name = _slug(f"by {flag}")
    return [Exhibit(name, f"Scores by {flag}", caption, figure, rows)]


def choose_scores(summary: Rows) -> dict[str, str]:
    """The scores to draw and their names: the usual ones, or what there is."""
    known = list(dict.fromkeys(row["score"] for row in summary))
    usual = {score: name for score, name in SCORES.items() if score in known}
    return usual or {score: score for score in known[: len(SCORES)]}


def _make_lines(
    rows: Rows, x: str, names: Sequence[str]
) -> dict[str, BandCurve]:
    lines: dict[str, list] = {}
    for row in rows:
        lines.setdefault(make_label(row, names), []).append(row)
    curves = {}
    for label, points in lines.items():
        points.sort(key=lambda row: row[x])
        columns = (
            [point[name] for point in points]
            for name in (x, "mean", "low", "high")
        )
        curves[label] = BandCurve(*columns)
    return curves


def _list_values(metrics: Sequence[Mapping[str, Any]], score: str) -> list:
    values = (found.get(score) for found in metrics)
    return [value for value in values if value is not None]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _join(title: str, *parts: str) -> str:
    """A title with what the lines are."""
    shown = ", ".join(part for part in parts if part)
    return f"{title}: {shown}" if shown else title


def _explain(flags: Sequence[str]) -> str:
    return f"Names are values of {', '.join(flags)}." if flags else ""


def _slug(text: str) -> str:
    """A file name: letters, digits, dots and underscores."""
    return re.sub(r"[^\w.]+", "_", text).strip("_")
