"""Geometry, probes, interactions, tuning and manifolds, stage by stage."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.datasets.factors import MAX_DIRECTIONS
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_manifolds
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.metrics.jacobians import describe_nondifferentiable
from tfcomp.metrics.kernels import summarize_similarity
from tfcomp.metrics.registry import Chart, Metric, list_charts
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis, tabulate_stages
from tfcomp.metrics.tuning import summarize_tuning
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row

# Rounding error of shares that are sums of products of derivatives.
ROUNDING = 1e-9
# Columns of the tables that no chart shows.
READABLE = (
    "scaled_factorization chance_factorization worst_pair_factorization "
    "dead_fraction floor_fraction_id floor_fraction_ood"
).split()
SHOWN = ("contrast", "gaussian_curvature")
SIMILARITIES = {"debiased CKA": "cka", "Procrustes": "procrustes", "RSA": "rsa"}


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

    exhibits = make_charts(ordered, "layers", READABLE)
    for analysis in ordered:
        exhibits += make_volume_maps(analysis)
    finding = run_exhibits.describe_column(
        exhibits, "cosine_factorization", "the factorization (cosine form)"
    )
    return make_section("layers", exhibits, finding, notes=" ".join(notes))


def make_charts(
    analyses: Sequence[RunAnalysis], section: str, others: Sequence[str] = ()
) -> list[Exhibit]:
    """Makes the charts of a section that have numbers.

    Args:
        analyses: The runs, a line each.
        section: The section whose charts the registry of metrics lists.
        others: Metrics that stand in the tables alone.
    """
    charts = list_charts(section)
    names = [m.name for metrics in charts.values() for m in metrics]
    rows = [
        {"run": analysis.name, "stage": stage, **numbers}
        for analysis in analyses
        for stage, numbers in tabulate_stages(
            analysis, [*names, *others]
        ).items()
    ]
    units = {pictures.label_volume(a.dataset.space) for a in analyses}
    volume = "log(volume / units of the factors)"
    if len(units) == 1:
        volume = units.pop()
    exhibits = []
    for chart, metrics in charts.items():
        known = [m for m in metrics if run_exhibits.has_numbers(rows, m.name)]
        if known:
            ylabel = chart.axis or volume
            exhibits.append(_make_chart(chart, known, rows, others, ylabel))
    return exhibits


def _make_chart(
    chart: Chart,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    others: Sequence[str],
    ylabel: str,
) -> Exhibit:
    texts = [chart.text]
    notes = []
    panels = {}
    for metric in metrics:
        # Mixed derivatives are 0 of a network that is linear between kinks.
        numbers = [abs(row[metric.name] or 0.0) for row in rows]
        if not any(number > ROUNDING for number in numbers):
            notes.append(f"{metric.label}: 0 in every stage.")
            continue
        panels[metric.label] = metric.name
        if metric.about:
            texts.append(f"{metric.label}: {metric.about}.")

    low = min(metric.limits.low for metric in metrics)
    high = max(metric.limits.high for metric in metrics)
    limits = None
    if math.isfinite(low) and math.isfinite(high):
        limits = (low, high)
        texts.append(f"The axis has the whole range, {low:g} to {high:g}.")
    columns = ["run", "stage", *(m.name for m in metrics), *others]
    return Exhibit(
        name=chart.name,
        title=chart.title,
        caption=" ".join(texts + notes).strip(),
        figure=run_exhibits.draw_stage_rows(rows, panels, ylabel, limits),
        rows=[{column: row[column] for column in columns} for row in rows],
    )


def make_volume_maps(analysis: RunAnalysis) -> list[Exhibit]:
    """Maps of log-volumes, one for each pair of factors, with one table."""
    analysis = analysis.for_maps
    data = analysis.dataset
    volumes = analysis.log_volume
    rows = run_exhibits.list_points(analysis, volumes)
    exhibits: list[Exhibit] = []
    for plane in data.planes:
        exhibit = run_exhibits.show_run(
            analysis,
            "log_volume",
            pictures.picture_volumes(data, volumes, analysis.name, [plane]),
            [] if exhibits else rows,
            suffix="" if len(data.space) == 2 else f"_{plane.name}",
            planes=pictures.describe_planes(data),
        )
        exhibits.append(exhibit)
    return exhibits


def make_interactions(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows interactions of factors, and the similarity of stages."""
    several = [a for a in analyses if len(a.dataset.space) > 1]
    exhibits = make_charts(several, "interactions", SHOWN)
    exhibits += [_show_similarities(analysis) for analysis in analyses]
    groups: dict[bytes, list[RunAnalysis]] = {}
    for analysis in analyses:
        points = analysis.compared_points.tobytes()
        groups.setdefault(points, []).append(analysis)
    for number, group in enumerate(groups.values()):
        if len(group) > 1:
            exhibits.append(_compare_stages(group, f"similarity_{number}"))
    finding = run_exhibits.describe_column(
        exhibits,
        "interaction_share",
        "the share of interactions in the variance",
    )
    return make_section("interactions", exhibits, finding)


def _show_similarities(analysis: RunAnalysis) -> Exhibit:
    stages = analysis.stages
    maps = {label: np.eye(len(stages)) for label in SIMILARITIES}
    for row in analysis.similarities:
        i = stages.index(row["stage"])
        j = stages.index(row["other"])
        for label, column in SIMILARITIES.items():
            number = row[column]
            if column == "procrustes":  # a distance
                number = np.nan if number is None else 1 - number**2 / 2
            maps[label][i, j] = maps[label][j, i] = number
    return run_exhibits.show_run(
        analysis,
        "similarity",
        draw_gram_matrices(maps, len(stages), names=stages),
        analysis.similarities,
        heading=f"Similarity of stages: {analysis.name}",
    )


def _compare_stages(analyses: Sequence[RunAnalysis], name: str) -> Exhibit:
    rows = []
    for first, second in itertools.combinations(analyses, 2):
        for stage in first.stages:
            if stage in second.stages:
                similarity = summarize_similarity(
                    first.shapes[stage], second.shapes[stage]
                )
                runs = f"{first.name} and {second.name}"
                rows.append({"run": runs, "stage": stage, **similarity})
    return make_exhibit(
        "similarity",
        run_exhibits.draw_stage_rows(
            rows, SIMILARITIES, "similarity, distance"
        ),
        rows,
        name=name,
        heading="The same stage of two runs",
    )


def make_tuning(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether units depend on factors additively."""
    analyses = [
        analysis
        for analysis in analyses
        if len(analysis.dataset.space) > 1 and analysis.splits.is_complete
    ]
    rows = run_exhibits.list_stages(
        analyses, lambda a, stage: summarize_tuning(a.tuning[stage])
    )
    column = "additive_share_mean"
    figure = run_exhibits.draw_stage_rows(
        rows, {"": column}, "additive share of variance"
    )
    exhibits = [make_exhibit("additive_share", figure, rows)]
    finding = run_exhibits.describe_column(
        exhibits, column, "the additive share of a unit"
    )
    return make_section("tuning", exhibits, finding)


def make_manifolds(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the combinations as points in the activations of every stage."""
    rows = run_exhibits.list_stages(
        analyses, lambda a, stage: dict(a.for_pairs.ranks[stage])
    )
    panels = {
        subset.upper(): subset
        for subset in ("id", "ood")
        if run_exhibits.has_numbers(rows, subset)
    }
    figure = run_exhibits.draw_stage_rows(rows, panels, "participation ratio")
    exhibits = [make_exhibit("effective_rank", figure, rows)]
    exhibits += [make_pca(analysis) for analysis in analyses]
    finding = run_exhibits.describe_column(
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
        points[stage] = np.pad(plane, ((0, 0), (0, missing)))
    return show_points(analysis, "pca", points, shares=", ".join(shares))


def show_points(
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
    rows = run_exhibits.list_points(analysis, columns)
    return run_exhibits.show_run(analysis, kind, figure, rows, **values)
