"""The page of a sweep: a table of settings, figures, comparisons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tfcomp.figures.curve_plots import (
    draw_curve_panels,
    draw_forest,
    join_curves,
    list_marks,
)
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_files import read_preview
from tfcomp.figures.image_rows import draw_rows
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
    """Makes the first screen, and sections of figures and comparisons.

    Args:
        sweep: The statistics of a sweep.
        folder: Its folder, which has the images of trials.
    """
    scores = sweep.scores[sweep.scores["mean"].notna()]
    names = _choose_scores(scores)
    scores = scores[scores["score"].isin(list(names))]

    exhibits = [score_table.make_table(sweep.runs)]
    exhibits += draw_samples(folder, sweep.runs)
    if names:
        exhibits.append(_draw_scores(sweep, scores, names))
    figures = _draw_figures(sweep, scores, names)
    text = "Errors by epoch, numbers of stages, scores by varied numbers."
    sections = [Section("figures", "Figures", text, figures)]

    sentences = [score_table.describe_fits(sweep.runs, sweep.planned)]
    pairs = _list_pairs(sweep)
    tested = _describe_pairs(pairs)
    if tested:
        sentences.append(tested)
    if pairs:
        sections.append(score_table.make_paired(pairs, tested))
    count = len(sweep.runs)
    if count < len(sweep.planned):
        total = len(sweep.planned)
        sentences.append(f"{count} of {total} trials have scores.")
    return Answer(sentences, exhibits), sections


def _choose_scores(scores: pd.DataFrame) -> dict[str, str]:
    """Chooses the scores that figures show, with their labels."""
    present = list(scores["score"].unique())
    leading = list_leading("image")
    names = {name: leading[name] for name in leading if name in present}
    return names or {name: name for name in present[:MAX_UNKNOWN]}


def _draw_figures(
    sweep: SweepNumbers, scores: pd.DataFrame, names: Mapping[str, str]
) -> list[Exhibit]:
    """Draws lines over epochs, stages, and each varied number."""
    stages = list_leading("stage", "stages")
    figures = draw_lines(sweep, sweep.curves, QUANTITIES, "epoch", "curves")
    figures += draw_lines(sweep, sweep.layers, stages, "stage", "layers")
    by_name = scores.rename(columns={"score": "quantity"})
    for flag in sweep.flags:
        if _is_axis(scores[flag]):
            figures += draw_lines(sweep, by_name, names, flag, f"by_{flag}")
    return figures


def draw_lines(
    sweep: SweepNumbers,
    table: pd.DataFrame,
    names: Mapping[str, str],
    x: str,
    name: str,
) -> list[Exhibit]:
    """Draws each named quantity against x, a line for each setting.

    Args:
        sweep: The sweep, for the flags that tell settings apart.
        table: Rows with `quantity`, the column x, `mean`, `low`, `high`, `n`.
        names: Labels of the quantities to draw.
        x: The column that is the horizontal axis.
        name: The name of the figure.

    Returns:
        No figure if there is no number, or too many lines to tell apart.
    """
    flags = [flag for flag in sweep.flags if flag != x]
    if table.empty or _label(table, flags).nunique() > MAX_LINES:
        return []

    curves = {}
    floors = {}
    present = set(table["quantity"])
    for quantity, label in names.items():
        if quantity not in present:
            continue
        rows = table[table["quantity"] == quantity].sort_values(x)
        rows = _hide_wide_ends(rows)
        for setting, line in rows.groupby(_label(rows, flags), sort=False):
            ends = line.set_index(x)[["mean", "low", "high"]]
            curves[label, str(setting)] = ends
        metric = find_metric(quantity)
        if metric and metric.floor is not None:
            floors[label] = metric.floor

    figure = draw_curve_panels(
        join_curves(curves), xlabel=x, log=_list_errors(names), floors=floors
    )
    numbers = list_rows(table.drop(columns="sd"))
    return [Exhibit(name, name, f"{BAND}, against: {x}.", figure, numbers)]


def _hide_wide_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Removes the intervals of a few seeds, which fill a figure."""
    is_shown = rows["n"] >= MIN_SEEDS
    low = rows["low"].where(is_shown)
    high = rows["high"].where(is_shown)
    return rows.assign(low=low, high=high)


def _list_errors(names: Mapping[str, str]) -> list[str]:
    """Lists the labels of errors, which are drawn on a logarithmic axis."""
    return [label for n, label in names.items() if n.endswith(LOGARITHMIC)]


def _draw_scores(
    sweep: SweepNumbers, table: pd.DataFrame, names: Mapping[str, str]
) -> Exhibit:
    """Draws one row for each setting, and one panel for each score."""
    rows = list_rows(table)
    settings = _label(sweep.seeds, sweep.flags)
    groups = sweep.seeds.groupby([settings, "score"])["value"]
    seeds = {key: values.tolist() for key, values in groups}
    marks = []
    for score, name in names.items():
        for row in rows:
            if row["score"] != score:
                continue
            setting = make_label(row, sweep.flags)
            ends = (None, None)
            if row["n"] >= MIN_SEEDS:
                ends = (row["low"], row["high"])
            values = seeds[setting, score]
            marks += list_marks(name, setting, values, row["mean"], ends)
    figure = draw_forest(marks, _list_errors(names))
    caption = f"Seeds (gray) and means (diamonds). {BAND}."
    return Exhibit("scores", "Scores", caption, figure, rows)


def draw_samples(folder: Path, runs: Sequence[ScoredRun]) -> list[Exhibit]:
    """Draws held-out images above the outputs of each setting's first seed.

    Args:
        folder: The folder of the sweep.
        runs: Its finished trials.

    Returns:
        A figure for each set of held-out images.
    """
    first_runs: dict[str, ScoredRun] = {}
    for run in runs:
        first_runs.setdefault(run.setting, run)

    groups: dict[tuple, dict[str, np.ndarray]] = {}
    for setting, run in first_runs.items():
        preview = read_preview(folder / run.link)
        if preview is None:
            continue
        titles, (truth, output) = preview
        key = (tuple(titles), truth.shape, truth.tobytes())
        rows = groups.setdefault(key, {"truth": truth})
        if len(rows) <= MAX_ROWS:
            rows[setting] = output

    caption = (
        "True images (first row), and outputs of the first seed of each "
        f"setting, at most {MAX_ROWS}. Pixels are shown from 0 to 1."
    )
    exhibits = []
    for number, (key, rows) in enumerate(groups.items()):
        figure = draw_rows(rows, first_row="top", column_titles=key[0])
        name = f"samples_{number}"
        exhibits.append(Exhibit(name, "Held-out images", caption, figure))
    return exhibits


def _list_pairs(sweep: SweepNumbers) -> list[dict[str, Any]]:
    """Lists all pairs, with the names of their settings in place of flags."""
    if sweep.paired.empty:
        return []
    table = sweep.paired.astype(object)
    table = table.where(table.notna(), None)
    for side in ("b", "a"):
        columns = {f"{flag}_{side}": flag for flag in sweep.flags}
        settings = table[list(columns)].rename(columns=columns)
        labels = _label(settings, sweep.flags)
        table = table.drop(columns=list(columns))
        table.insert(0, side, labels)
    return list_rows(table)


def _describe_pairs(pairs: Sequence[dict[str, Any]]) -> str:
    """Says what tests of the leading held-out score found."""
    held_out = [row for row in pairs if row["score"] == HELD_OUT]
    if not held_out:
        return ""
    baselines = {row["a"] for row in held_out}
    baseline = ""
    if len(baselines) == 1 and len(held_out) > 1:
        baseline = baselines.pop()
    return score_table.describe_tests(held_out, baseline)


def _label(table: pd.DataFrame, flags: Sequence[str]) -> pd.Series:
    labels = [make_label(row, flags) for row in list_rows(table)]
    return pd.Series(labels, table.index, dtype=object)


def list_rows(table: pd.DataFrame) -> list[Any]:
    """Lists the rows of a table, by the names of its columns."""
    return table.to_dict("records")


def _is_axis(values: pd.Series) -> bool:
    """Checks whether the values of a flag are at least three numbers."""
    is_number = pd.api.types.is_numeric_dtype(values.infer_objects())
    return is_number and values.nunique() >= 3
