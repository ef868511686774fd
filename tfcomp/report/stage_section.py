"""Geometry, probes, interactions, tuning and manifolds, stage by stage."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_manifolds
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.metrics.jacobians import describe_nondifferentiable
from tfcomp.metrics.metric import Chart, Metric
from tfcomp.metrics.registry import list_charts
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.metrics.run_metrics import tabulate_stages
from tfcomp.metrics.similarity import summarize_similarity
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
    notes = [
        f"{s.name} is left out: its factors have no order."
        for s in analyses
        if not s.dataset.space.ordered
    ]
    analyses = [s for s in analyses if s.dataset.space.ordered]
    notes += [
        f"{s.name}: {describe_nondifferentiable(s.nondifferentiable)}."
        for s in analyses
        if s.nondifferentiable
    ]
    exhibits = make_charts(analyses, "layers", READABLE)
    for analysis in analyses:
        exhibits += make_volume_maps(analysis)
    name = "the factorization (cosine form)"
    said = run_exhibits.describe_column(exhibits, "cosine_factorization", name)
    return make_section("layers", exhibits, said, notes=" ".join(notes))


def make_charts(
    analyses: Sequence[RunAnalysis], section: str, others: Sequence[str] = ()
) -> list[Exhibit]:
    """Makes the charts of a section, with `others` in their tables."""
    charts = list_charts(section)
    shown = [m.name for metrics in charts.values() for m in metrics]
    rows = [
        {"run": analysis.name, "stage": stage, **row}
        for analysis in analyses
        for stage, row in tabulate_stages(analysis, [*shown, *others]).items()
    ]
    units = {pictures.label_volume(s.dataset.space) for s in analyses}
    mixed = "log(volume / units of the factors)"
    volume = units.pop() if len(units) == 1 else mixed
    exhibits = []
    for chart, metrics in charts.items():
        known = [m for m in metrics if run_exhibits.has_numbers(rows, m.name)]
        if known:
            label = chart.axis or volume
            exhibits.append(_make_chart(chart, known, rows, others, label))
    return exhibits


def _make_chart(
    chart: Chart,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    others: Sequence[str],
    ylabel: str,
) -> Exhibit:
    # Mixed derivatives are 0 of a network that is linear between kinks.
    shown = [
        m
        for m in metrics
        if any(abs(row[m.name] or 0.0) > ROUNDING for row in rows)
    ]
    texts = [chart.text, *(f"{m.label}: {m.about}." for m in shown if m.about)]
    limited = [m.limits for m in metrics]
    ends = min(a.low for a in limited), max(a.high for a in limited)
    limits = ends if all(map(math.isfinite, ends)) else None
    if limits:
        whole = "{:g} to {:g}".format(*limits)
        texts.append(f"The axis has the whole range, {whole}.")
    zeros = (m.label for m in metrics if m not in shown)
    texts += [f"{label}: 0 in every stage." for label in zeros]
    panels = {m.label: m.name for m in shown}
    figure = run_exhibits.draw_stage_rows(rows, panels, ylabel, limits)
    columns = ["run", "stage", *(m.name for m in metrics), *others]
    return Exhibit(
        chart.name,
        chart.title,
        " ".join(texts).strip(),
        figure,
        [{column: row[column] for column in columns} for row in rows],
    )


def make_volume_maps(analysis: RunAnalysis) -> list[Exhibit]:
    """Maps of log-volumes, one for each pair of factors, with one table."""
    analysis = analysis.for_maps
    dataset, volumes = analysis.dataset, analysis.log_volume
    is_pair = len(dataset.space) == 2
    return [
        run_exhibits.show_run(
            analysis,
            "log_volume",
            pictures.picture_volumes(dataset, volumes, analysis.name, [plane]),
            [] if number else run_exhibits.list_points(analysis, volumes),
            suffix="" if is_pair else f"_{plane.name}",
            planes=pictures.describe_planes(dataset),
        )
        for number, plane in enumerate(dataset.planes)
    ]


def make_interactions(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows interactions of factors, and the similarity of stages."""
    several = [s for s in analyses if len(s.dataset.space) > 1]
    exhibits = make_charts(several, "interactions", SHOWN)
    exhibits += map(_show_similarities, analyses)
    groups: dict[bytes, list[RunAnalysis]] = {}
    for analysis in analyses:
        points = analysis.compared_points.tobytes()
        groups.setdefault(points, []).append(analysis)
    exhibits += [
        _compare_stages(group, f"similarity_{number}")
        for number, group in enumerate(groups.values())
        if len(group) > 1
    ]
    name = "the share of interactions in the variance"
    said = run_exhibits.describe_column(exhibits, "interaction_share", name)
    return make_section("interactions", exhibits, said)


def _show_similarities(analysis: RunAnalysis) -> Exhibit:
    rows, count = analysis.similarities, len(analysis.stages)
    maps = np.tile(np.eye(count), (len(SIMILARITIES), 1, 1))
    for row in rows:
        i, j = (analysis.stages.index(row[key]) for key in ("stage", "other"))
        maps[:, i, j] = [row[name] for name in SIMILARITIES.values()]
        maps[1, i, j] = 1 - maps[1, i, j] ** 2 / 2
        maps[:, j, i] = maps[:, i, j]
    panels = dict(zip(SIMILARITIES, maps, strict=True))
    figure = draw_gram_matrices(panels, count, names=analysis.stages)
    heading = f"Similarity of stages: {analysis.name}"
    return run_exhibits.show_run(
        analysis, "similarity", figure, rows, heading=heading
    )


def _compare_stages(analyses: Sequence[RunAnalysis], name: str) -> Exhibit:
    rows = [
        {
            "run": f"{first.name} and {second.name}",
            "stage": stage,
            **summarize_similarity(first.shapes[stage], second.shapes[stage]),
        }
        for first, second in itertools.combinations(analyses, 2)
        for stage in first.stages
        if stage in second.stages
    ]
    label = "similarity, distance"
    figure = run_exhibits.draw_stage_rows(rows, SIMILARITIES, label)
    heading = "The same stage of two runs"
    return make_exhibit("similarity", figure, rows, name=name, heading=heading)


def make_tuning(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether units depend on factors additively."""
    rows = run_exhibits.list_stages(
        analyses, lambda s, name: summarize_tuning(s.tuning[name])
    )
    panels = {"": "additive_share_mean"}
    label = "additive share of variance"
    figure = run_exhibits.draw_stage_rows(rows, panels, label)
    exhibits = [make_exhibit("additive_share", figure, rows)]
    name = "the additive share of a unit"
    said = run_exhibits.describe_column(exhibits, panels[""], name)
    return make_section("tuning", exhibits, said)


def make_manifolds(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the combinations as points in the activations of every stage."""
    rows = run_exhibits.list_stages(
        analyses, lambda s, stage: dict(s.for_pairs.ranks[stage])
    )
    panels = {
        s.upper(): s for s in ("id", "ood") if run_exhibits.has_numbers(rows, s)
    }
    figure = run_exhibits.draw_stage_rows(rows, panels, "participation ratio")
    exhibits = [make_exhibit("effective_rank", figure, rows)]
    exhibits += map(make_pca, analyses)
    name = "the effective rank over ID points"
    said = run_exhibits.describe_column(exhibits, "id", name)
    return make_section("manifolds", exhibits, said, points=FEW_POINTS)


def make_pca(analysis: RunAnalysis) -> Exhibit:
    """Draws the first two principal components of every stage."""
    analysis, shares, points = analysis.for_pairs, [], {}
    for stage, components in analysis.components.items():
        shares.append(f"{stage} {components.explained[:2].sum():.0%}")
        # A code of one unit has a line, at 0.
        missing = max(2 - components.features.shape[1], 0)
        shown = components.features[:, :2]
        points[stage] = np.pad(shown, ((0, 0), (0, missing)))
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
    columns = {
        f"{stage}_{axis}": column
        for stage, places in points.items()
        for axis, column in enumerate(places.T, 1)
    }
    rows = run_exhibits.list_points(analysis, columns)
    return run_exhibits.show_run(analysis, kind, figure, rows, **values)
