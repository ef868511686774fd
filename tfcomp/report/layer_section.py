"""Geometry and probes, stage by stage (figures 2, 3d, 4d, 11-14)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.features import finite_or_none
from tfcomp.analysis.geometry import compute_chance, compute_pair_scores
from tfcomp.evaluation.derivatives import describe_nondifferentiable
from tfcomp.evaluation.measures import tabulate_stages
from tfcomp.evaluation.pictures import (
    describe_planes,
    label_volume,
    picture_volumes,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_course
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import (
    Row,
    draw_stage_rows,
    find_rows,
    list_points,
    list_stages,
    show_run,
)
from tfcomp.statistics.measure import Chart, Measure, list_charts

# Of log-volumes of runs with different factors.
MIXED_UNITS = "log(volume / units of the factors)"

# Of sums of products of derivatives, which are shares.
ROUNDING = 1e-9
# In the tables, beside what is drawn.
READABLE = (
    "scaled_factorization",
    "chance_factorization",
    "worst_pair_factorization",
    "dead_fraction",
    "floor_fraction_id",
    "floor_fraction_ood",
)


def make_layers(studies: Sequence[Study]) -> Section:
    """Shows how the representation changes from stage to stage."""
    names = [s.name for s in studies if not s.dataset.space.ordered]
    studies = [s for s in studies if s.dataset.space.ordered]
    notes = [f"{n} is left out: its factors have no order." for n in names]
    notes += [
        f"{s.name}: {describe_nondifferentiable(s.nondifferentiable)}."
        for s in studies
        if s.nondifferentiable
    ]
    exhibits = make_charts(studies, "layers", READABLE)
    exhibits += make_worst_pairs(studies)
    for study in studies:
        exhibits += make_volume_maps(study)
    return Section(
        "layers",
        "Geometry, stage by stage",
        "These numbers come from exact Jacobians of every stage with respect "
        "to the factors at every grid point. A one-hot code has no useful "
        "derivative; there they come from differences over the grid. "
        + " ".join(notes),
        exhibits,
        describe_course(
            find_rows(exhibits, "cosine_factorization"),
            "cosine_factorization",
            "the factorization (cosine form)",
        ),
    )


def make_worst_pairs(studies: Sequence[Study]) -> list[Exhibit]:
    """Names the two factors that every stage tells apart worst, of several."""
    rows = list_stages(
        [s for s in studies if len(s.dataset.space.ordered) > 2],
        lambda study, stage: (
            find_worst_pair(study, study.metrics[stage])
            | {"chance": compute_chance(study.stage_sizes[stage])}
        ),
    )
    text = (
        "Of all pairs of factors, the one with the least cosine form of the "
        "factorization score, which a mean over pairs hardly shows. chance is "
        "what random directions in as many units have."
    )
    shown = Exhibit("worst_pairs", "Worst pairs", text, rows=rows)
    return [shown] if rows else []


def find_worst_pair(study: Study, metric: np.ndarray) -> Row:
    """The pair of factors of a stage with the least score."""
    scores, space = compute_pair_scores(metric), study.dataset.space
    pair = min(scores, key=scores.__getitem__)
    names = [space.factors[space.ordered[i]].name for i in pair]
    score = finite_or_none(scores[pair])
    return {"pair": " and ".join(names), "cosine_factorization": score}


def make_charts(
    studies: Sequence[Study], section: str, others: Sequence[str] = ()
) -> list[Exhibit]:
    """The charts that measures of a section declare, where there are numbers.

    Their tables also have the columns that are named.
    """
    charts = list_charts(section)
    shown = [m.name for measures in charts.values() for m in measures]
    tables = {s.name: tabulate_stages(s, [*shown, *others]) for s in studies}
    rows = list_stages(studies, lambda study, stage: tables[study.name][stage])
    return [
        make_chart(studies, chart, found, rows, others)
        for chart, measures in charts.items()
        if (found := [m for m in measures if has_numbers(rows, m.name)])
    ]


def has_numbers(rows: Sequence[Row], name: str) -> bool:
    """Whether a column of a table is not empty."""
    return any(row[name] is not None for row in rows)


def make_chart(
    studies: Sequence[Study],
    chart: Chart,
    measures: Sequence[Measure],
    rows: Sequence[Row],
    others: Sequence[str],
) -> Exhibit:
    """Draws measures against the stage, one line a run, a panel a measure."""
    # Mixed derivatives are 0 of a network that is linear between its kinks.
    drawn = [
        m
        for m in measures
        if any(abs(row[m.name] or 0.0) > ROUNDING for row in rows)
    ]
    panels = {measure.label: measure.name for measure in drawn}
    zeros = [m.label for m in measures if m not in drawn]
    units = {label_volume(study.dataset.space) for study in studies}
    ylabel = chart.axis or (units.pop() if len(units) == 1 else MIXED_UNITS)
    columns = ["run", "stage", *(m.name for m in measures), *others]
    texts = [f"{m.label}: {m.about}." for m in drawn if m.about]
    texts += [f"{label}: 0 in every stage." for label in zeros]
    return Exhibit(
        chart.name,
        chart.title,
        " ".join([chart.text, *texts]).strip(),
        draw_stage_rows(rows, panels, ylabel) if panels else None,
        [{column: row[column] for column in columns} for row in rows],
    )


def make_volume_maps(study: Study) -> list[Exhibit]:
    """Draws the log-volume over the grid, a figure for each pair of factors.

    The table has the log-volumes, from which the maps take their means off.
    """
    is_pair, study = len(study.dataset.space) == 2, study.mapped
    dataset, volumes = study.dataset, study.log_volume
    rows = list_points(study, volumes)
    exhibits = []
    for plane in dataset.planes:
        suffix = "" if is_pair else f"_{plane.name}"
        figure = picture_volumes(dataset, volumes, study.name, [plane])
        exhibit = show_run(
            study,
            f"log_volume{suffix}",
            "Log-volume maps",
            "log sqrt(det g) at every grid point less its mean over the stage, "
            "a map for each, all on one color scale with 0 in its middle: the "
            "stage stretches what is red and shrinks what is blue. The "
            "held-out region is outlined." + describe_planes(dataset),
            figure,
            rows,
        )
        exhibits.append(exhibit)
        rows = []  # once
    return exhibits
