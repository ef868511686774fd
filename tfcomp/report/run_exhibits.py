"""Exhibits that sections share, and the section of settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tfcomp.datasets import solvable
from tfcomp.datasets.notes import describe_copies
from tfcomp.evaluation import pictures
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.curve_plots import draw_stage_panels, join_curves
from tfcomp.figures.exhibits import Exhibit, Plot
from tfcomp.figures.image_rows import draw_rows
from tfcomp.models.acting_starts import POSE_TERMS
from tfcomp.models.decoders.acting import describe_pose_terms
from tfcomp.report import wording
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.statistics.seed_statistics import choose_flags

Row = dict[str, Any]

# Flags that the table always has, beside flags in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()
OF_VECTORS = (
    "Images are embeddings, shown by the nearest item's picture, else in "
    "shades of gray; outputs are sums of parts that are fitted to ID."
)


def group_runs(analyses: Sequence[RunAnalysis]) -> list[list[RunAnalysis]]:
    """Groups runs that have the same factors, region and true images."""
    groups: dict[tuple, list[RunAnalysis]] = {}
    for analysis in analyses:
        data, truth = analysis.dataset, analysis.evaluation.truth
        key = data.space, data.region.spec, hash(truth.tobytes())
        groups.setdefault(key, []).append(analysis)
    return list(groups.values())


def rename_runs(analyses: Sequence[RunAnalysis]) -> list[RunAnalysis]:
    """Names several runs by their settings (`wording.name_runs`)."""
    if len(analyses) < 2:
        return list(analyses)
    names = wording.name_runs([analysis.run.config for analysis in analyses])
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
    name = f"{wording.to_file_name(analysis.name)}_{kind}{suffix}"
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


def describe_column(exhibits: Sequence[Exhibit], column: str, name: str) -> str:
    """Describes a column over the stages, from the first exhibit with it."""
    tables = (item.rows for item in exhibits if item.rows)
    rows = next((rows for rows in tables if column in rows[0]), [])
    return wording.describe_course(rows, column, name)


def draw_stage_rows(
    rows: Sequence[Row],
    panels: Mapping[str, str],
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> Plot:
    """Draws columns of a table against the stage, a line a run (and curve)."""
    table = pd.DataFrame(rows).set_index("stage")
    names = [name for name in ("run", "curve") if name in table]
    lines = table.groupby(table[names].agg(", ".join, axis=1), sort=False)
    curves = {
        (title, str(line)): each[column].to_frame("mean")
        for title, column in panels.items()
        for line, each in lines
    }
    points = join_curves(curves, "stage")
    return draw_stage_panels(points, ylabel=ylabel, limits=limits)


def has_numbers(rows: Sequence[Row], name: str) -> bool:
    """Returns True if a column of a table is not empty."""
    return any(row[name] is not None for row in rows)


def make_output_rows(
    analyses: Sequence[RunAnalysis],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """Shows the truth, then a row for each run, with scores of each truth."""
    first = analyses[0]
    splits, data = first.splits, first.dataset
    if rows is None:
        rows = pictures.choose_spread(np.flatnonzero(splits.is_ood))
    settings = [analysis.run.config.identity() for analysis in analyses]
    flags = choose_flags(settings)
    labels = labels or [analysis.name for analysis in analyses]
    images = {"truth": data.to_pictures(first.evaluation.truth[rows])}
    for label, analysis in zip(labels, analyses, strict=True):
        images[label] = data.to_pictures(analysis.evaluation.images[rows])
    figure = draw_rows(
        images,
        splits.grid[rows] if data.has_position else None,
        pictures.get_pixel_mask(data),
        first_row=data.first_row,
        column_titles=pictures.title_points(data, rows),
    )
    table = [
        {
            "run": analysis.name,
            **{flag: setting[flag] for flag in flags},
            "subset": subset,
            **scores,
        }
        for analysis, setting in zip(analyses, settings, strict=True)
        for subset, scores in analysis.evaluation.scores.items()
    ]
    return make_exhibit(
        "samples",
        figure,
        table,
        name=f"{name}_{wording.to_file_name(first.name)}",
        heading=title,
        region=data.region.spec,
        vectors="" if data.is_pixels else OF_VECTORS,
    )


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings = _list_settings(analyses)
    tables = [
        make_exhibit("settings", rows=settings),
        make_exhibit("coverage", rows=_list_coverage(analyses)),
        make_exhibit("channels", rows=_list_channels(analyses)),
    ]
    return make_section(
        "runs",
        tables,
        wording.describe_common(settings),
        {analysis.name: analysis.run.description for analysis in analyses},
    )


def _list_settings(analyses: Sequence[RunAnalysis]) -> list[Row]:
    flags = [s.run.config.identity() if s.run.path else {} for s in analyses]
    names = dict.fromkeys(
        name
        for settings in flags
        for name, value in settings.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    )
    return [
        {"run": analysis.name, "held out": analysis.dataset.region.spec}
        | {name: settings.get(name) for name in names}
        for analysis, settings in zip(analyses, flags, strict=True)
    ]


def _list_coverage(analyses: Sequence[RunAnalysis]) -> list[Row]:
    rows: list[Row] = []
    for analysis in analyses:
        data = analysis.dataset
        row: Row = {"run": analysis.name, "region": data.region.spec}
        row |= solvable.measure_coverage(data) | _list_certified(analysis)
        if copies := describe_copies(data.copies.summary):
            row["copies"] = copies
        rows.append(row)
    # Runs with more factors have more orders.
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]


def _list_certified(analysis: RunAnalysis) -> dict[str, float | None]:
    orders = analysis.run.metrics.get("certificate")
    if orders is None:
        certificates = solvable.certify_dataset(analysis.dataset)
        orders = solvable.summarize_certificates(analysis.dataset, certificates)
    names = {
        "certified": "certified",
        "missing": "missing_rank",
        "noise": "noise_mean",  # older runs lack it
    }
    return {
        f"{short}_{order}": numbers.get(name)
        for order, numbers in orders.items()
        for short, name in names.items()
    }


def _list_channels(analyses: Sequence[RunAnalysis]) -> list[Row]:
    return [
        {
            "run": analysis.name,
            "factor": factor,
            "transform": describe_pose_terms({"": channels}).strip(),
            **{channel: channels.get(channel) for channel in POSE_TERMS},
        }
        for analysis in analyses
        for factor, channels in analysis.run.metrics.get("channels", {}).items()
    ]
