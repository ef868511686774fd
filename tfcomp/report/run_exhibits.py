"""Exhibits of runs and their tables, which all sections use."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import FactorSpace
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.curve_plots import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_course
from tfcomp.report.page import make_exhibit
from tfcomp.report.run_names import name_runs, to_file_name

Row = dict[str, Any]


def group_runs(analyses: Sequence[RunAnalysis]) -> list[list[RunAnalysis]]:
    """Groups runs that have the same factors, region and true images."""
    groups: dict[tuple, list[RunAnalysis]] = {}
    for analysis in analyses:
        data, truth = analysis.dataset, analysis.evaluation.truth
        key = data.space, data.region.spec, hash(truth.tobytes())
        groups.setdefault(key, []).append(analysis)
    return list(groups.values())


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings (`run_names.name_runs`)."""
    if len(analyses) < 2:
        return list(analyses)
    names = name_runs([analysis.run.config for analysis in analyses])
    return [a.rename(*both) for a, both in zip(analyses, names, strict=True)]


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
    factors = name_values(analysis.dataset.space, analysis.splits.grid)
    return to_rows({**factors, "is_ood": analysis.splits.is_ood, **columns})


def name_values(space: FactorSpace, grid: np.ndarray) -> dict[str, np.ndarray]:
    """Returns columns of a factor table [n, F], with names of levels."""
    return {
        factor.name: np.array(list(map(factor.describe, values)))
        if factor.names
        else values
        for factor, values in zip(space, grid.T, strict=True)
    }


def list_stages(
    analyses: Sequence[RunAnalysis], measure: Callable[[RunAnalysis, str], Row]
) -> list[Row]:
    """Returns a row for each stage of each run, with the row of `measure`."""
    return [
        {"run": analysis.name, "stage": stage, **measure(analysis, stage)}
        for analysis in analyses
        for stage in analysis.stages
    ]


def describe_column(exhibits: Sequence[Exhibit], column: str, name: str) -> str:
    """Describes a column over the stages, from the first exhibit with it."""
    tables = (item.rows for item in exhibits if item.rows)
    rows = next((rows for rows in tables if column in rows[0]), [])
    return describe_course(rows, column, name)


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draws columns of a table against the stage, a line a run (and curve)."""
    stages: dict[str, list[str]] = {}
    numbers: dict[str, dict[str, list]] = {title: {} for title in panels}
    for row in rows:
        line = ", ".join(row[key] for key in ("run", "curve") if key in row)
        stages.setdefault(line, []).append(row["stage"])
        for title, column in panels.items():
            numbers[title].setdefault(line, []).append(row[column])
    return draw_stage_panels(numbers, stages, ylabel=ylabel, limits=limits)
