"""Section on inversion: factors of true images, by what a model draws."""

from collections.abc import Sequence

import numpy as np

from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit
from tfcomp.metrics.inversion import (
    MODEL,
    ON_GRID,
    Inversion,
    invert_model,
    list_targets,
)
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report.page import (
    Row,
    Section,
    describe_runs,
    list_points,
    make_exhibit,
    make_section,
    show_run,
)
from tfcomp.representations.readers import Reader, train_id_reader

READER = "reader of ID images"


def invert_run(
    analysis: RunAnalysis,
    reader: Reader | None = None,
) -> Inversion:
    """Inverts a model, and compares it with a network that reads images.

    Args:
        analysis: Of the model.
        reader: A reader of ID images; by default one is trained.
    """
    dataset = analysis.dataset
    if reader is None:
        reader = train_id_reader(dataset)
    target = list_targets(dataset)
    index = reader.read(target.images)
    columns = []
    for factor, readings in zip(dataset.space, index.T, strict=True):
        columns.append(factor.values()[readings])
    answers = {READER: np.stack(columns, axis=1)}
    return invert_model(analysis, target, answers)


def make_inversion(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which factors of true images a model finds."""
    rows: list[Row] = []
    maps = []
    for analysis in analyses:
        if not analysis.dataset.is_pixels:
            continue
        inversion = invert_run(analysis)
        for row in inversion.rows:
            rows.append({"run": analysis.name, **row})
        if analysis.has_map and analysis.splits.is_complete:
            maps.append(_map_error(analysis, inversion))
    table = make_exhibit("table_inversion", rows=rows)
    finding = describe_runs(rows, _describe_inversion)
    return make_section("inversion", [table, *maps], finding)


def _map_error(analysis: RunAnalysis, inversion: Inversion) -> Exhibit:
    """Maps the error of the factors that a model finds."""
    data = analysis.dataset
    most = max(data.space.shape)
    errors = {analysis.name: np.minimum(inversion.error, most)}
    return show_run(
        analysis,
        "inversion",
        pictures.picture_maps(data, errors, label="error (steps)"),
        list_points(analysis, {"error": errors[analysis.name]}),
        most=most,
        planes=pictures.describe_planes(data),
    )


def _describe_inversion(rows: Sequence[Row]) -> str:
    """Describes the share of held-out images whose factors are found."""
    subset = rows[-1]["subset"]  # held-out ones come last, if there are any
    shares = []
    for row in rows:
        is_total = row["factor"] == "all" and row["level"] == "any"
        is_source = row["source"] != ON_GRID
        if row["subset"] == subset and is_total and is_source:
            name = row["source"]
            if name == MODEL:
                name = "by the model"
            shares.append(f"{row['found']:.0%} {name}")
    return f"all factors of {subset.upper()} images are found: " + ", ".join(
        shares
    )
