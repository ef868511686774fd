"""Geometry, probes, interactions and tuning, stage by stage."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.datasets.grid_maps import Curve
from tfcomp.evaluation import pictures
from tfcomp.evaluation.derivatives import describe_nondifferentiable
from tfcomp.evaluation.metrics import list_charts
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.evaluation.run_metrics import tabulate_stages
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row
from tfcomp.statistics.metric import Chart, Metric

# Rounding error of shares that are sums of products of derivatives.
ROUNDING = 1e-9
# Columns of the tables that no chart shows.
READABLE = (
    "scaled_factorization chance_factorization worst_pair_factorization "
    "dead_fraction floor_fraction_id floor_fraction_ood"
).split()
SHOWN = ("contrast", "gaussian_curvature")
SIMILARITIES = {"debiased CKA": "cka", "Procrustes": "procrustes", "RSA": "rsa"}
JUMP_PANELS = {
    "steps, median": "speed_ratio",
    "longest step": "max_speed_ratio",
    "turning, median": "turning_ratio",
    "sharpest turn": "max_turning_ratio",
}


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
    tables = {s.name: tabulate_stages(s, [*shown, *others]) for s in analyses}
    rows = run_exhibits.list_stages(
        analyses, lambda analysis, stage: tables[analysis.name][stage]
    )
    units = {pictures.label_volume(s.dataset.space) for s in analyses}
    mixed = "log(volume / units of the factors)"
    volume = units.pop() if len(units) == 1 else mixed
    return [
        _make_chart(chart, metrics, rows, others, chart.axis or volume)
        for chart, all_metrics in charts.items()
        if (
            metrics := [
                m for m in all_metrics if run_exhibits.has_numbers(rows, m.name)
            ]
        )
    ]


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
    ends = (
        min(m.limits.low for m in metrics),
        max(m.limits.high for m in metrics),
    )
    limits = ends if all(map(math.isfinite, ends)) else None
    if limits:
        whole = "{:g} to {:g}".format(*limits)
        texts.append(f"The axis has the whole range, {whole}.")
    zeros = (m.label for m in metrics if m not in shown)
    texts += [f"{label}: 0 in every stage." for label in zeros]
    panels = {m.label: m.name for m in shown}
    draw = run_exhibits.draw_stage_rows
    figure = draw(rows, panels, ylabel, limits) if panels else None
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
    analyses = [
        s for s in analyses if len(s.dataset.space) > 1 and s.splits.is_complete
    ]
    if not analyses:
        return make_section("tuning", [])
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


def show_jumps(
    gaps: Sequence[tuple[RunAnalysis, Curve, Any]],
) -> Exhibit:
    """Shows steps and turns of the stages in a gap, and outside of it."""
    rows = [
        {"run": analysis.name, "curve": curve.label, "stage": stage} | numbers
        for analysis, curve, _ in gaps
        for stage, numbers in analysis.compare_gap(curve).items()
    ]
    figure = run_exhibits.draw_stage_rows(
        rows, JUMP_PANELS, "inside the gap / outside"
    )
    return make_exhibit("gap_statistics", figure, rows)
