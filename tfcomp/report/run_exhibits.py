"""What the sections have in common: exhibits of one run, points, stages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.datasets.factors import FactorSpace
from tfcomp.evaluation.study import Study
from tfcomp.figures.curve_plots import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit

Row = dict[str, Any]


def group_runs(studies: Sequence[Study]) -> list[list[Study]]:
    """Runs that have the same factors, region and true images."""
    groups: dict[tuple, list[Study]] = {}
    for study in studies:
        truth = study.evaluation.truth.tobytes()
        key = (study.dataset.space, study.dataset.region.spec, hash(truth))
        groups.setdefault(key, []).append(study)
    return list(groups.values())


def show_run(
    study: Study,
    kind: str,
    title: str,
    caption: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
) -> Exhibit:
    """Makes the exhibit `<run>_<kind>`, whose heading names the run, too.

    `caption`, `figure` and `rows` are those of an `Exhibit`.
    """
    name, heading = f"{study.name}_{kind}", f"{title}: {study.name}"
    return Exhibit(name, heading, caption, figure, rows)


def to_rows(columns: Mapping[str, ArrayLike]) -> list[Row]:
    """Turns columns of one length into rows of plain Python numbers."""
    lists = [np.asarray(column).tolist() for column in columns.values()]
    return [
        dict(zip(columns, numbers, strict=True))
        for numbers in zip(*lists, strict=True)
    ]


def list_points(study: Study, columns: Mapping[str, np.ndarray]) -> list[Row]:
    """Lists the factors of every grid point, whether it is OOD, and numbers.

    `columns` are names to a number per grid point, `[n]`.
    """
    factors = name_values(study.dataset.space, study.splits.grid)
    return to_rows({**factors, "is_ood": study.splits.is_ood, **columns})


def name_values(space: FactorSpace, grid: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of a factor table [n, F] by name, with names of their values."""
    return {
        factor.name: np.array(list(map(factor.describe, values)))
        if factor.names
        else values
        for factor, values in zip(space, grid.T, strict=True)
    }


def list_stages(
    studies: Sequence[Study], measure: Callable[[Study, str], Row]
) -> list[Row]:
    """Lists all stages of all runs: their names, and what `measure` says."""
    return [
        {"run": study.name, "stage": stage, **measure(study, stage)}
        for study in studies
        for stage in study.stages
    ]


def find_rows(exhibits: Sequence[Exhibit], column: str) -> Sequence[Row]:
    """The rows of the first exhibit that has a column; nothing without one."""
    tables = (item.rows for item in exhibits if item.rows)
    return next((rows for rows in tables if column in rows[0]), [])


def draw_stage_rows(
    rows: Sequence[Row], panels: Mapping[str, str], ylabel: str
) -> Figure:
    """Draws columns of a table against the stage.

    The rows, one a stage, are in the order of the data flow. Those with equal
    `run` and, where they have one, equal `curve` make a line. Panels are titles
    to the names of columns.
    """
    lines: dict[str, list[Row]] = {}
    for row in rows:
        names = [row[key] for key in ("run", "curve") if key in row]
        lines.setdefault(", ".join(names), []).append(row)
    return draw_stage_panels(
        {
            panel: {
                name: [row[column] for row in line]
                for name, line in lines.items()
            }
            for panel, column in panels.items()
        },
        {name: [row["stage"] for row in line] for name, line in lines.items()},
        ylabel=ylabel,
    )
