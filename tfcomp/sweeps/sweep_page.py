"""The page of a sweep: a table of settings, figures, comparisons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.figures.curve_plots import draw_curve_panels, join_curves
from tfcomp.figures.estimate_plots import draw_forest, list_marks
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.kept_outputs import read_preview
from tfcomp.metrics.registry import find_metric, list_leading
from tfcomp.report import score_table
from tfcomp.report.page import Answer, Section
from tfcomp.report.score_table import HELD_OUT, MIN_SEEDS, ScoredRun
from tfcomp.statistics.seed_statistics import make_label
from tfcomp.sweeps.sweep_numbers import QUANTITIES, SweepNumbers

MAX_ROWS = 8  # of outputs
MAX_LINES = 20  # settings that a figure of lines can tell apart
MAX_UNKNOWN = 3  # scores that are shown where none has a declared rank
LOGARITHMIC = ("mse", "loss")  # how the names of errors end
BAND = "Means over seeds and, of three seeds or more, 95 % intervals"


def make_page(
    sweep: SweepNumbers, folder: Path
) -> tuple[Answer, list[Section]]:
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
    shown = [score_table.make_table(sweep.runs)]
    shown += draw_samples(folder, sweep.runs)
    shown += [_draw_scores(sweep, scores, names)] if names else []
    text = "Errors by epoch, numbers of stages, scores by varied numbers."
    sections = [Section("figures", "Figures", text, figures)]
    pairs, tested = _list_pairs(sweep), ""
    if held_out := [row for row in pairs if row["score"] == HELD_OUT]:
        first = {row["a"] for row in held_out}
        one = first.pop() if len(first) == 1 and len(held_out) > 1 else ""
        tested = score_table.describe_tests(held_out, one)
    if pairs:
        flags = [f"{flag}_{side}" for flag in sweep.flags for side in "ab"]
        cells = [{k: v for k, v in r.items() if k not in flags} for r in pairs]
        sections.append(score_table.make_paired(cells, tested))
    sentences = [score_table.describe_fits(sweep.runs, sweep.planned)]
    sentences += [tested] if tested else []
    if (count := len(sweep.runs)) < (every := len(sweep.planned)):
        sentences.append(f"{count} of {every} trials have scores.")
    return Answer(sentences, shown), sections


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
    curves, floors = {}, {}
    for quantity in [n for n in names if n in set(table["quantity"])]:
        rows = table[table["quantity"] == quantity].sort_values(x)
        ends, is_band = ["low", "high"], rows["n"] >= MIN_SEEDS
        rows = rows.assign(**{end: rows[end].where(is_band) for end in ends})
        for label, line in rows.groupby(_label(rows, flags), sort=False):
            place = names[quantity], str(label)
            curves[place] = line.set_index(x)[["mean", *ends]]
        metric = find_metric(quantity)
        if metric and metric.floor is not None:
            floors[names[quantity]] = metric.floor
    log = {label for n, label in names.items() if n.endswith(LOGARITHMIC)}
    points = join_curves(curves)
    figure = draw_curve_panels(points, xlabel=x, log=log, floors=floors)
    numbers = list_rows(table.drop(columns="sd"))
    return [Exhibit(name, name, f"{BAND}, against: {x}.", figure, numbers)]


def _draw_scores(
    sweep: SweepNumbers, table: pd.DataFrame, names: Mapping[str, str]
) -> Exhibit:
    """Draws one row a setting, and one panel a score."""
    rows = list_rows(table)
    labels = _label(sweep.seeds, sweep.flags)
    seeds = dict(list(sweep.seeds.groupby([labels, "score"])["value"]))
    marks = []
    for score, name in names.items():
        for row in [row for row in rows if row["score"] == score]:
            label = make_label(row, sweep.flags)
            ends = row["low"], row["high"]
            ends = ends if row["n"] >= MIN_SEEDS else (None, None)
            values = seeds[label, score].tolist()
            marks += list_marks(name, label, values, row["mean"], ends)
    log = [name for s, name in names.items() if s.endswith(LOGARITHMIC)]
    figure = draw_forest(marks, log)
    caption = f"Seeds (gray) and means (diamonds). {BAND}."
    return Exhibit("scores", "Scores", caption, figure, rows)


def draw_samples(folder: Path, runs: Sequence[ScoredRun]) -> list[Exhibit]:
    """Draws held-out images above the outputs of each setting's first seed."""
    first = {run.setting: run for run in reversed(runs)}
    groups: dict[tuple, dict[str, np.ndarray]] = {}
    for setting in dict.fromkeys(run.setting for run in runs):
        if found := read_preview(folder / first[setting].link):
            titles, (truth, output) = found
            key = tuple(titles), truth.shape, truth.tobytes()
            rows = groups.setdefault(key, {"truth": truth})
            if len(rows) <= MAX_ROWS:
                rows[setting] = output
    caption = (
        "True images (first row), and outputs of the first seed of each "
        f"setting, at most {MAX_ROWS}. Pixels are shown from 0 to 1."
    )
    return [
        Exhibit(
            f"samples_{number}",
            "Held-out images",
            caption,
            draw_rows(rows, first_row="top", column_titles=titles),
        )
        for number, ((titles, *_), rows) in enumerate(groups.items())
    ]


def _list_pairs(sweep: SweepNumbers) -> list[dict[str, Any]]:
    """Returns all pairs, with the names of their settings first."""
    paired, flags = sweep.paired.astype(object), sweep.flags
    return [
        {
            side: make_label({f: row[f"{f}_{side}"] for f in flags}, flags)
            for side in "ab"
        }
        | row
        for row in list_rows(paired.where(paired.notna(), None))
    ]


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    labels = [make_label(row, flags) for row in list_rows(table)]
    return pd.Series(labels, table.index, dtype=object)


def list_rows(table: pd.DataFrame) -> list[Any]:
    """Returns the rows of a table, by the names of its columns."""
    return table.to_dict("records")


def _is_axis(values: pd.Series) -> bool:
    """Returns True if the values of a flag are at least three numbers."""
    numbers = values.unique()
    return len(numbers) >= 3 and all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in numbers
    )
