"""What the sections have in common: exhibits of one run, points, stages."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_stage_panels
from tfcomp.figures.exhibits import Exhibit

Row = dict[str, Any]


def show_run(
    study: Study,
    kind: str,
    title: str,
    caption: str,
    figure: Figure | None = None,
    rows: Sequence[Row] = (),
) -> Exhibit:
    """Makes an exhibit of one run, which has the run in its name and title.

    Args:
        study: The run.
        kind: What the exhibit is, as the end of a file name.
        title: Beginning of its heading.
        caption: What is plotted, in which units, for which points.
        figure: The picture, if there is one.
        rows: The numbers.

    Returns:
        The exhibit `<run>_<kind>`.
    """
    name, heading = f"{study.name}_{kind}", f"{title}: {study.name}"
    return Exhibit(name, heading, caption, figure, rows)


def list_points(study: Study, columns: Mapping[str, np.ndarray]) -> list[Row]:
    """Lists the grid points of a run.

    Args:
        study: The run.
        columns: Name to a number per grid point, `[n]`.

    Returns:
        One row a point: its factors, whether it is OOD, and the numbers.
    """
    names = study.dataset.space.names
    return [
        {
            **dict(zip(names, map(float, point), strict=True)),
            "is_ood": bool(study.splits.is_ood[index]),
            **{name: float(values[index]) for name, values in columns.items()},
        }
        for index, point in enumerate(study.splits.grid)
    ]


def group_by_space(studies: Sequence[Study]) -> list[list[Study]]:
    """Groups the runs with a map that have the same factors and region."""
    groups: dict[tuple, list[Study]] = {}
    for study in studies:
        if study.has_map:
            key = (study.dataset.space, study.dataset.region.spec)
            groups.setdefault(key, []).append(study)
    return list(groups.values())


def list_stages(
    studies: Sequence[Study], measure: Callable[[Study, str], Row]
) -> list[Row]:
    """Lists the stages of all runs.

    Args:
        studies: The runs.
        measure: Returns the numbers of one stage of one run by name.

    Returns:
        One row a stage: names of the run and the stage, and the numbers.
    """
    return [
        {"run": study.name, "stage": stage, **measure(study, stage)}
        for study in studies
        for stage in study.stages
    ]


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    title: str = "",
) -> Figure:
    """Draws columns of a table against the stage.

    Args:
        rows: One row a stage, in the order of the data flow. Rows with equal
            `run` and, where they have one, equal `curve` make a line.
        panels: Title of a panel to the name of its column.
        ylabel: What the numbers are, with units.
        title: Title of the figure.

    Returns:
        The figure.
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
        title=title,
    )
