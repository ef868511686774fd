"""Geometry and probes, stage by stage (figures 2, 3d, 4d, 11-14)."""

import math
from collections.abc import Sequence

from tfcomp.analysis.features import finite_or_none
from tfcomp.analysis.geometry import compute_chance, compute_pair_scores
from tfcomp.evaluation import pictures
from tfcomp.evaluation.derivatives import describe_nondifferentiable
from tfcomp.evaluation.metrics import list_charts
from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.evaluation.run_metrics import tabulate_stages
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row
from tfcomp.statistics.metric import Chart, Metric

# Rounding error of shares that are sums of products of derivatives.
ROUNDING = 1e-9
# Columns of the tables that no chart shows.
READABLE = (
    "scaled_factorization chance_factorization worst_pair_factorization "
    "dead_fraction floor_fraction_id floor_fraction_ood"
).split()


def make_layers(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows how the representation changes from stage to stage."""
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
    exhibits += _make_worst_pairs(analyses)
    for analysis in analyses:
        exhibits += make_volume_maps(analysis)
    column = "cosine_factorization", "the factorization (cosine form)"
    return Section(
        "layers",
        "Geometry, stage by stage",
        "Computed from exact Jacobians of every stage with respect to the "
        "factors at every grid point. A one-hot code has no useful "
        "derivative; its numbers are from finite differences over the grid. "
        + " ".join(notes),
        exhibits,
        run_exhibits.describe_column(exhibits, *column),
    )


def _make_worst_pairs(analyses: Sequence[RunAnalysis]) -> list[Exhibit]:
    several = [s for s in analyses if len(s.dataset.space.ordered) > 2]
    rows = run_exhibits.list_stages(several, _find_worst_pair)
    text = (
        "Of all pairs of factors, the one with the least cosine form of the "
        "factorization score, which a mean over pairs hardly shows. chance is "
        "the score of random directions in as many units."
    )
    shown = Exhibit("worst_pairs", "Worst pairs", text, rows=rows)
    return [shown] if rows else []


def _find_worst_pair(analysis: RunAnalysis, stage: str) -> Row:
    scores = compute_pair_scores(analysis.metrics[stage])
    space = analysis.dataset.space
    pair = min(scores, key=scores.__getitem__)
    names = [space.factors[space.ordered[i]].name for i in pair]
    return {
        "pair": " and ".join(names),
        "cosine_factorization": finite_or_none(scores[pair]),
        "chance": compute_chance(analysis.stage_sizes[stage]),
    }


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
    return [
        _make_chart(analyses, chart, found, rows, others)
        for chart, metrics in charts.items()
        if (found := [m for m in metrics if has_numbers(rows, m.name)])
    ]


def has_numbers(rows: Sequence[Row], name: str) -> bool:
    """Returns True if a column of a table is not empty."""
    return any(row[name] is not None for row in rows)


def _make_chart(
    analyses: Sequence[RunAnalysis],
    chart: Chart,
    metrics: Sequence[Metric],
    rows: Sequence[Row],
    others: Sequence[str],
) -> Exhibit:
    panels, texts, zeros = {}, [chart.text], []
    for m in metrics:
        # Mixed derivatives are 0 of a network that is linear between kinks.
        if not any(abs(row[m.name] or 0.0) > ROUNDING for row in rows):
            zeros.append(f"{m.label}: 0 in every stage.")
            continue
        panels[m.label] = m.name
        texts += [f"{m.label}: {m.about}."] if m.about else []
    units = {
        pictures.label_volume(analysis.dataset.space) for analysis in analyses
    }
    mixed = "log(volume / units of the factors)"
    ylabel = chart.axis or (units.pop() if len(units) == 1 else mixed)
    columns = ["run", "stage", *(m.name for m in metrics), *others]
    limits = (
        min(m.limits.low for m in metrics),
        max(m.limits.high for m in metrics),
    )
    is_whole = all(map(math.isfinite, limits))
    if is_whole:
        ends = f"{limits[0]:g} to {limits[1]:g}"
        texts.append(f"The axis has the whole range, {ends}.")
    draw = run_exhibits.draw_stage_rows
    return Exhibit(
        chart.name,
        chart.title,
        " ".join([*texts, *zeros]).strip(),
        draw(rows, panels, ylabel, limits if is_whole else None)
        if panels
        else None,
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
            "log_volume" if is_pair else f"log_volume_{plane.name}",
            "Log-volume maps",
            "log sqrt(det g) at every grid point less its mean over the stage, "
            "a map for each, all on one color scale with 0 in its middle. Red: "
            "the stage expands the factors there; blue: it contracts them. "
            "The held-out region is outlined."
            + pictures.describe_planes(dataset),
            pictures.picture_volumes(dataset, volumes, analysis.name, [plane]),
            [] if number else run_exhibits.list_points(analysis, volumes),
        )
        for number, plane in enumerate(dataset.planes)
    ]
