"""Tuning of units (figures 4e, 4f, 15)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.pictures import get_region_mask
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.tuning_plots import draw_index_distribution
from tfcomp.figures.tuning_plots import draw_tuning
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import draw_stage_rows
from tfcomp.report.run_exhibits import list_stages
from tfcomp.report.run_exhibits import show_run
from tfcomp.report.run_exhibits import to_rows

SHARE_LABEL = "additive share of variance"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def make_tuning(studies: Sequence[Study]) -> Section:
    """Shows whether units answer to one factor or to combinations."""
    studies = [
        s for s in studies if len(s.dataset.space) > 1 and s.splits.is_complete
    ]
    exhibits = [make_shares(studies)] if studies else []
    for study in studies:
        exhibits.append(make_distribution(study))
        if study.has_map:
            exhibits += [make_units(study, stage) for stage in study.stages]
    return Section(
        "tuning",
        "Tuning",
        "The additive share of a unit is the part of its variance over the "
        "grid that a function of x plus a function of y explains. It is 1 "
        "for a stripe and 0 for a purely conjunctive unit; a bump one pixel "
        "wide has 0.22.",
        exhibits,
    )


def make_shares(studies: Sequence[Study]) -> Exhibit:
    """Draws the mean additive share against the stage."""
    rows = list_stages(
        studies, lambda s, name: summarize_tuning(s.tuning[name])
    )
    return Exhibit(
        "additive_share",
        "From stripes to bumps",
        "Additive share of variance, averaged over the units of a stage that "
        "vary at all. In the table, dead_unit_fraction is the share of the "
        "units that do not.",
        draw_stage_rows(rows, {"": "additive_share_mean"}, SHARE_LABEL),
        rows,
    )


def make_distribution(study: Study) -> Exhibit:
    """Draws the additive share of all units, stage by stage."""
    shares = {
        stage: tuning.additive_share for stage, tuning in study.tuning.items()
    }
    quantiles = {
        stage: np.nanquantile(values, QUANTILES)
        for stage, values in shares.items()
        if np.isfinite(values).any()
    }
    return show_run(
        study,
        "additive_share",
        "Additive share of all units",
        "Distribution of the additive share over the units of every stage, "
        "with its mean and its median. Units that do not vary are left out; "
        "their share is written above.",
        draw_index_distribution(shares, label=SHARE_LABEL, title=study.name),
        [
            {"stage": stage, "quantile": q, "additive_share": float(value)}
            for stage, values in quantiles.items()
            for q, value in zip(QUANTILES, values, strict=True)
        ],
    )


def make_units(study: Study, stage: str) -> Exhibit:
    """Draws activation maps and marginals of the most telling units."""
    numbers, tuning = study.numbers[stage], study.tuning[stage]
    x, y = study.dataset.space
    labels = [
        f"unit {unit}, additive {tuning.additive_share[unit]:.2f}"
        for unit in numbers.units
    ]
    figure = None
    if labels:
        figure = draw_tuning(
            numbers.maps,
            labels,
            get_region_mask(study.dataset),
            axis_names=(x.label, y.label),
            title=f"{study.name}, {stage}",
        )
    shares = tuning.factor_shares[numbers.units]  # [k, 2]
    return show_run(
        study,
        f"tuning_{stage}",
        f"Units of {stage}",
        "Activation of single units over the grid (left) and its mean as a "
        "function of each factor. The first is the unit that varies most; "
        "each further one varies most in what the units before it leave "
        "unexplained. The held-out region is outlined or shaded.",
        figure,
        to_rows(
            {
                "unit": numbers.units,
                "variance": tuning.variance[numbers.units],
                f"share_{x.name}": shares[:, 0],
                f"share_{y.name}": shares[:, 1],
            }
        ),
    )
