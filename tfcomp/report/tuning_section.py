"""Tuning of units (figures 4e, 4f, 15)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.tuning_plots import draw_index_distribution
from tfcomp.report.findings import describe_course
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import (
    draw_stage_rows,
    find_rows,
    list_stages,
    show_run,
)

SHARE_LABEL = "additive share of variance"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def make_tuning(studies: Sequence[Study]) -> Section:
    """Shows whether units answer to one factor or to combinations."""
    studies = [
        s for s in studies if len(s.dataset.space) > 1 and s.splits.is_complete
    ]
    exhibits = [make_shares(studies)] if studies else []
    exhibits += [make_distribution(study) for study in studies]
    return Section(
        "tuning",
        "Tuning",
        "The additive share of a unit is the part of its variance over the "
        "grid that a sum of functions of single factors explains. It is 1 "
        "for a stripe and 0 for a purely conjunctive unit; a bump one pixel "
        "wide has 0.22. It needs every combination: runs that look at a "
        "sample of them are left out.",
        exhibits,
        describe_course(
            find_rows(exhibits, "additive_share_mean"),
            "additive_share_mean",
            "the additive share of a unit",
        ),
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
        "vary at all. In the table, pair_share_mean is the share of the "
        "interactions of two factors (what then is left to 1 is of higher "
        "order), and dead_unit_fraction that of the units that do not vary.",
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
