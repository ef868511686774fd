"""Sections on stages: geometry, probes, tuning, manifolds, embeddings."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp.datasets.factors import MAX_DIRECTIONS
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_manifolds
from tfcomp.metrics.jacobians import describe_nondifferentiable
from tfcomp.metrics.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.metrics.registry import Chart, Metric, list_charts
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis, tabulate_stages
from tfcomp.metrics.tuning import summarize_tuning
from tfcomp.report.page import (
    Row,
    Section,
    describe_course,
    describe_runs,
    draw_stage_rows,
    list_points,
    list_stages,
    make_exhibit,
    make_section,
    show_run,
)

# Columns of the tables that no chart shows.
READABLE = (
    "scaled_factorization chance_factorization worst_pair_factorization "
    "dead_fraction floor_fraction_id floor_fraction_ood"
).split()
SHOWN = ("contrast", "gaussian_curvature")
SUMS_OF_PARTS = {
    "R² of a sum of parts": "additive_r2",
    "whitened": "additive_r2_whitened",
    "in the span of probes": "additive_r2_probes",
    "accuracy of probes, OOD": "accuracy_ood",
}


def make_layers(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the geometry and probes of every stage (figures 2, 3d, 11-14)."""
    notes = []
    ordered = []
    for analysis in analyses:
        if not analysis.dataset.space.directions:
            notes.append(
                f"{analysis.name} is left out: its factors have no order, or "
                f"more than {MAX_DIRECTIONS} of them have."
            )
            continue
        ordered.append(analysis)
        if analysis.nondifferentiable:
            text = describe_nondifferentiable(analysis.nondifferentiable)
            notes.append(f"{analysis.name}: {text}.")

    exhibits = list(make_charts(ordered, "layers", READABLE))
    for analysis in ordered:
        exhibits += make_volume_maps(analysis)
    finding = describe_course(
        exhibits, "cosine_factorization", "the factorization (cosine form)"
    )
    return make_section("layers", exhibits, finding, notes=" ".join(notes))


def make_charts(
    analyses: Sequence[RunAnalysis],
    section: str,
    others: Sequence[str] = (),
) -> Iterator[Exhibit]:
    """Yields the charts of a section that have numbers.

    Args:
        analyses: The runs, a line each.
        section: The section whose charts the registry of metrics lists.
        others: Metrics that stand in the tables alone.
    """
    charts = list_charts(section)
    names = list(others)
    for metrics in charts.values():
        names += [metric.name for metric in metrics]
    rows = []
    for analysis in analyses:
        stages = tabulate_stages(analysis, names)
        for stage, numbers in stages.items():
            rows.append(
                {
                    "run": analysis.name,
                    "stage": stage,
                    **numbers,
                }
            )

    units = {pictures.label_volume(a.dataset.space) for a in analyses}
    volume = " or ".join(sorted(units))
    for chart, metrics in charts.items():
        filled = [m for m in metrics if has_numbers(rows, m.name)]
        if not filled:
            continue
        yield _make_chart(
            chart,
            filled,
            rows,
            others,
            ylabel=chart.axis or volume,
        )


def has_numbers(rows: Sequence[Row], column: str) -> bool:
    """Returns True if a column of a table is not empty.

    Args:
        rows: The table.
        column: The name of the column.
    """
    return any(row[column] is not None for row in rows)


def _make_chart(
    chart: Chart,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    others: Sequence[str],
    ylabel: str,
) -> Exhibit:
    texts = [chart.text]
    for metric in metrics:
        if metric.about:
            texts.append(f"{metric.label}: {metric.about}.")

    low = min(metric.limits.low for metric in metrics)
    high = max(metric.limits.high for metric in metrics)
    limits = None
    if math.isfinite(low) and math.isfinite(high):
        limits = (low, high)
        texts.append(f"The axis has the whole range, {low:g} to {high:g}.")
    panels = {metric.label: metric.name for metric in metrics}
    columns = [
        "run",
        "stage",
        *panels.values(),
        *others,
    ]
    return Exhibit(
        name=chart.name,
        title=chart.title,
        caption=" ".join(texts).strip(),
        figure=draw_stage_rows(rows, panels, ylabel, limits),
        rows=[{column: row[column] for column in columns} for row in rows],
    )


def make_volume_maps(analysis: RunAnalysis) -> list[Exhibit]:
    """Maps of log-volumes, one for each pair of factors, with one table."""
    analysis = analysis.for_maps
    data = analysis.dataset
    volumes = analysis.log_volume
    rows = list_points(analysis, volumes)
    exhibits: list[Exhibit] = []
    for plane in data.planes:
        suffix = ""
        if len(data.space) > 2:
            suffix = f"_{plane.name}"
        exhibit = show_run(
            analysis,
            "log_volume",
            pictures.picture_volumes(data, volumes, analysis.name, [plane]),
            rows,
            suffix=suffix,
            planes=pictures.describe_planes(data),
        )
        exhibits.append(exhibit)
        rows = []  # once for all pairs
    return exhibits


def make_interactions(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows interactions of factors."""
    several = [a for a in analyses if len(a.dataset.space) > 1]
    exhibits = list(make_charts(several, "interactions", SHOWN))
    finding = describe_course(
        exhibits,
        "interaction_share",
        "the share of interactions in the variance",
    )
    return make_section("interactions", exhibits, finding)


def make_tuning(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether units depend on factors additively."""
    complete = []
    for analysis in analyses:
        if len(analysis.dataset.space) > 1 and analysis.splits.is_complete:
            complete.append(analysis)
    rows = list_stages(
        complete, lambda a, stage: summarize_tuning(a.tuning[stage])
    )
    column = "additive_share_mean"
    figure = draw_stage_rows(rows, {"": column}, "additive share of variance")
    exhibits = [make_exhibit("additive_share", figure, rows)]
    finding = describe_course(exhibits, column, "the additive share of a unit")
    return make_section("tuning", exhibits, finding)


def make_manifolds(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the combinations as points in the activations of every stage."""
    rows = list_stages(
        analyses, lambda a, stage: dict(a.for_pairs.ranks[stage])
    )
    panels = {}
    for column in ("id", "ood"):
        if has_numbers(rows, column):
            panels[column.upper()] = column
    figure = draw_stage_rows(rows, panels, "participation ratio")
    exhibits = [make_exhibit("effective_rank", figure, rows)]
    exhibits += map(make_pca, analyses)
    finding = describe_course(
        exhibits, "id", "the effective rank over ID points"
    )
    return make_section("manifolds", exhibits, finding, points=FEW_POINTS)


def make_pca(analysis: RunAnalysis) -> Exhibit:
    """Draws the first two principal components of every stage."""
    analysis = analysis.for_pairs
    shares = []
    points = {}
    for stage, components in analysis.components.items():
        shares.append(f"{stage} {components.explained[:2].sum():.0%}")
        plane = components.features[:, :2]
        # A code of one unit has a line, at 0.
        missing = 2 - plane.shape[1]
        margins = [(0, 0), (0, missing)]
        points[stage] = np.pad(plane, margins)
    return _show_points(analysis, "pca", points, shares=", ".join(shares))


def make_umap(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    exhibits = []
    for analysis in analyses:
        exhibits += try_umap(analysis)
    finding = UMAP_HINT
    if has_umap():
        finding = ""
    return make_section("umap", exhibits, finding)


def try_umap(analysis: RunAnalysis) -> list[Exhibit]:
    """Draws UMAP of every stage if it is installed and does not fail."""
    if not has_umap():
        return []
    analysis = analysis.for_pairs
    try:
        points = compute_umaps(analysis.components)
    except OSError as error:
        print(f"UMAP of {analysis.name} is left out: {error}", file=sys.stderr)
        return []
    return [_show_points(analysis, "umap", points)]


def _show_points(
    analysis: RunAnalysis,
    kind: str,
    points: Mapping[str, np.ndarray],
    **values: str,
) -> Exhibit:
    """Draws the points of a run in two dimensions [n, 2] of every stage."""
    figure = draw_manifolds(
        points,
        analysis.splits.grid,
        analysis.splits.is_ood,
        space=analysis.dataset.space.factors,
        title=f"{analysis.name}, {kind.upper()}",
    )
    columns = {}
    for stage, places in points.items():
        columns[f"{stage}_1"] = places[:, 0]
        columns[f"{stage}_2"] = places[:, 1]
    rows = list_points(analysis, columns)
    return show_run(
        analysis,
        kind,
        figure,
        rows,
        **values,
    )


def make_embeddings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the matrices that forced rendering learned."""
    exhibits = []
    for analysis in analyses:
        for factor in analysis.embeddings:
            exhibits += show_embedding(analysis, factor)
    return make_section("embeddings", exhibits)


def show_embedding(analysis: RunAnalysis, factor: str) -> list[Exhibit]:
    """Shows the matrices of one factor, and its profiles if it has any.

    Args:
        analysis: The run, of a model of forced rendering.
        factor: The name of the factor.
    """
    embedding = analysis.embeddings[factor]
    figures = pictures.picture_embedding(
        analysis.dataset.space[factor], embedding
    )
    summary = [{"factor": factor, **embedding.summary}]
    exhibits = []
    for kind, figure in figures.items():
        rows: Any = summary
        if kind == "profiles":
            rows = figure.data.to_dict("records")
        exhibit = show_run(
            analysis,
            kind,
            figure,
            rows,
            suffix=f"_{factor}",
            factor=factor,
        )
        exhibits.append(exhibit)
    return exhibits


def make_representations(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows how far layers are sums of parts, and their disentanglement."""
    rows = list_table(analyses, "layers")
    points = []
    for row in rows:
        line = f"{row['run']}, {row['classes']}"
        points.append(
            {
                **row,
                "run": line,
                "stage": row["layer"],
            }
        )
    figure = draw_stage_rows(points, SUMS_OF_PARTS, "share")
    exhibits = [make_exhibit("table_layers", figure, rows)]
    for name in ("parts", "pairs", "codes"):
        table = list_table(analyses, name)
        exhibits.append(make_exhibit(f"table_{name}", rows=table))
    finding = describe_runs(rows, describe_sums)
    return make_section("representations", exhibits, finding)


def list_table(analyses: Sequence[RunAnalysis], name: str) -> list[Row]:
    """Lists the rows of one of the `tables` of models.

    Args:
        analyses: The models.
        name: The name of the table, which some may lack.
    """
    rows: list[Row] = []
    for analysis in analyses:
        for row in analysis.run.tables.get(name, ()):
            rows.append({"run": analysis.name, **row})
    return rows


def describe_sums(rows: Sequence[Row]) -> str:
    """Describes the latents, or the last layer, as sums of parts."""
    latents = [row for row in rows if row["layer"] == "latents"]
    # The second row has permuted classes.
    row, chance = latents or list(rows[-2:])
    if row["additive_r2"] is None:
        return ""

    text = (
        f"a sum of parts explains {row['additive_r2']:.1%} of the variance in "
        f"{row['layer']} ({chance['additive_r2']:.1%} with permuted classes)"
    )
    if row["composed_ood"] is not None:
        text += (
            f"; the relative MSE of held-out embeddings composed of parts is "
            f"{row['composed_ood']:.2g} (nearest training embedding "
            f"{row['nearest_ood']:.2g})"
        )
    return text


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    rows = list_table(analyses, "readings")
    samples = list_table(analyses, "samples")
    tables = [
        make_exhibit("table_readings", rows=rows),
        make_exhibit("table_samples", rows=samples),
    ]
    finding = describe_runs(rows, _describe_readings)
    return make_section("readings", tables, finding)


def _describe_readings(rows: Sequence[Row]) -> str:
    """Describes how often a reader finds all factors."""
    shares = []
    for row in rows:
        if row["level"] == "any" and row["factor"] == "all":
            shares.append(
                f"{row['accuracy']:.1%} of {row['subset'].upper()} (true "
                f"images {row['ceiling']:.1%})"
            )
    return f"all factors are read right in {' and '.join(shares)}"
