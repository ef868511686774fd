"""Tables, pictures and findings that the sections of a report share."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.figures.curve_plots import draw_stage_panels, join_curves
from tfcomp.figures.exhibits import Exhibit, Plot
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report.page import make_exhibit
from tfcomp.report.verbalize import name_runs, to_file_name

Row = dict[str, Any]

CLOSE = 0.05  # numbers that differ less are "about equal"
MAX_NAMED = 3  # runs in a finding


def group_runs(analyses: Sequence[RunAnalysis]) -> list[list[RunAnalysis]]:
    """Groups runs that have the same factors, region and true images."""
    groups: dict[tuple, list[RunAnalysis]] = {}
    for analysis in analyses:
        data = analysis.dataset
        truth = hash(analysis.evaluation.truth.tobytes())
        key = (data.space, data.region.spec, truth)
        groups.setdefault(key, []).append(analysis)
    return list(groups.values())


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings; models from elsewhere have none."""
    if len(analyses) < 2 or any(a.run.path is None for a in analyses):
        return list(analyses)
    names = name_runs([analysis.run.config for analysis in analyses])
    return [
        analysis.rename(name, setting)
        for analysis, (name, setting) in zip(analyses, names, strict=True)
    ]


def show_run(
    analysis: RunAnalysis,
    kind: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
    *,
    suffix: str = "",
    **values: object,
) -> Exhibit:
    """Makes the exhibit `<run>_<kind><suffix>` of a run."""
    name = f"{to_file_name(analysis.name)}_{kind}{suffix}"
    values = {"run": analysis.name, **values}
    return make_exhibit(kind, figure, rows, name=name, **values)


def to_rows(columns: Mapping[str, ArrayLike]) -> list[Row]:
    """Converts columns of one length to rows of plain Python numbers."""
    rows: list[Any] = pd.DataFrame(dict(columns)).to_dict("records")
    return rows


def list_points(
    analysis: RunAnalysis, columns: Mapping[str, np.ndarray]
) -> list[Row]:
    """Lists factors and split of every grid point beside columns [n]."""
    factors = analysis.dataset.space.name_values(analysis.splits.grid)
    return to_rows({**factors, "is_ood": analysis.splits.is_ood, **columns})


def list_stages(
    analyses: Sequence[RunAnalysis], measure: Callable[[RunAnalysis, str], Row]
) -> list[Row]:
    """Returns a row for each stage of each run, with the row of `measure`."""
    return [
        {"run": analysis.name, "stage": stage, **measure(analysis, stage)}
        for analysis in analyses
        for stage in analysis.stages
    ]


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Plot | None:
    """Draws columns of a table against the stage, a line a run (and curve).

    Args:
        rows: Rows with `run` and `stage`, and `curve` if runs have several.
        panels: The columns to draw, by the titles of their panels.
        ylabel: The label of the axis.
        limits: The ends of the axis, if they are fixed.
    """
    if not rows or not panels:
        return None
    table = pd.DataFrame(rows).set_index("stage")
    line = table["run"]
    if "curve" in table:
        line = line + ", " + table["curve"]
    curves = {}
    for title, column in panels.items():
        for name, stages in table.groupby(line, sort=False):
            curves[title, str(name)] = stages[column].to_frame("mean")
    points = join_curves(curves, "stage")
    return draw_stage_panels(points, ylabel=ylabel, limits=limits)


def has_numbers(rows: Sequence[Row], column: str) -> bool:
    """Returns True if a column of a table is not empty."""
    return any(row[column] is not None for row in rows)


def drop_name(text: str, name: str) -> str:
    """Leaves out the name before a finding, for a page of one run."""
    text = text.removeprefix(f"{name}: ")
    return f"{text[:1].upper()}{text[1:]}"


def tell_runs(describe: Callable[..., str]) -> Callable[..., str]:
    """Turns a function of the rows of one run into one of several runs.

    The line of each run begins with its name; at most three are told.
    """

    @functools.wraps(describe)
    def describe_runs(rows: Sequence[Row], *words: str) -> str:
        runs: dict[str, list[Row]] = {}
        for row in rows:
            runs.setdefault(row["run"], []).append(row)
        findings = []
        for name, own_rows in runs.items():
            text = describe(own_rows, *words)
            if text:
                findings.append(f"{name}: {text}")
        if not findings:
            return ""
        text = "; ".join(findings[:MAX_NAMED])
        num_more = len(findings) - MAX_NAMED
        return f"{text}; and {num_more} more." if num_more > 0 else f"{text}."

    return describe_runs


def describe_column(exhibits: Sequence[Exhibit], column: str, name: str) -> str:
    """Describes a column over the stages, from the first exhibit with it."""
    for exhibit in exhibits:
        if exhibit.rows and column in exhibit.rows[0]:
            return describe_course(exhibit.rows, column, name)
    return ""


@tell_runs
def describe_course(rows: Sequence[Row], column: str, name: str) -> str:
    """Describes how a number changes from the first stage to the last."""
    values: dict[str, float] = {}
    for row in rows:
        if row.get(column) is not None:
            # As it is printed, without the sign of 0.
            values[row["stage"]] = round(row[column], 2) + 0.0
    if len(values) < 2:
        return ""
    first, *_, last = values
    start = values[first]
    end = values[last]
    if abs(end - start) <= CLOSE * max(abs(start), abs(end)):
        course = f"is about {end:.2f} in {first} and {last}"
    else:
        verb = "rises" if end > start else "falls"
        course = f"{verb} from {start:.2f} ({first}) to {end:.2f} ({last})"

    lowest = min(values, key=values.__getitem__)
    lower_end = min(start, end)
    if values[lowest] < lower_end - CLOSE * abs(lower_end):
        course += f", and is least in {lowest} ({values[lowest]:.2f})"
    return f"{name} {course}"
