"""Tuning of units (figures 4e, 4f, 15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.analysis.tuning import summarize_tuning
from tfcomp.evaluation.pictures import get_region_mask
from tfcomp.evaluation.study import Study
from tfcomp.figures import draw_index_distribution
from tfcomp.figures import draw_stage_panels
from tfcomp.figures import draw_tuning
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section


def make_tuning(studies: Sequence[Study]) -> Section:
    """Whether units answer to one factor or to combinations."""
    studies = [s for s in studies if len(s.dataset.space) > 1]
    exhibits = [make_shares(studies)] if studies else []
    for study in studies:
        exhibits.append(make_distribution(study))
        if study.has_map:
            exhibits += [make_units(study, stage) for stage in study.stages]
    return Section(
        "tuning",
        "Tuning",
        "The additive share of a unit is the part of its variance over the "
        "grid that a sum of a function of x and a function of y explains: 1 "
        "for a stripe, 0 for a purely conjunctive unit (a bump one pixel "
        "wide has 0.22).",
        exhibits,
    )


def make_shares(studies: Sequence[Study]) -> Exhibit:
    """Mean additive share against stage."""
    summaries = {
        (study.name, stage): summarize_tuning(study.tuning[stage])
        for study in studies
        for stage in study.stages
    }
    figure = draw_stage_panels(
        {
            "": {
                study.name: [
                    summaries[study.name, stage]["additive_share_mean"]
                    for stage in study.stages
                ]
                for study in studies
            }
        },
        {study.name: study.stages for study in studies},
        ylabel="additive share of variance",
    )
    rows: list[dict[str, Any]] = [
        {"run": name, "stage": stage, **summary}
        for (name, stage), summary in summaries.items()
    ]
    return Exhibit(
        "additive_share",
        "From stripes to bumps",
        "Additive share of variance, mean over the units of a stage that "
        "vary at all; dead_unit_fraction is the rest.",
        figure,
        rows,
    )


def make_distribution(study: Study) -> Exhibit:
    """Additive share of all units, per stage."""
    shares = {
        stage: study.tuning[stage].additive_share for stage in study.stages
    }
    figure = draw_index_distribution(
        shares, label="additive share of variance", title=study.name
    )
    rows = [
        {"stage": stage, "quantile": q, "additive_share": float(value)}
        for stage, values in shares.items()
        if np.isfinite(values).any()
        for q, value in zip(
            (0.05, 0.25, 0.5, 0.75, 0.95),
            np.nanquantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)),
            strict=True,
        )
    ]
    return Exhibit(
        f"{study.name}_additive_share",
        f"Additive share of all units: {study.name}",
        "Distribution over the units of every stage, with mean and median; "
        "units that do not vary are left out and counted.",
        figure,
        rows,
    )


def make_units(study: Study, stage: str) -> Exhibit:
    """Activation maps and marginals of the most telling units."""
    numbers, tuning = study.numbers[stage], study.tuning[stage]
    x, y = study.dataset.space
    share = tuning.additive_share[numbers.units]
    labels = [
        f"unit {unit}, additive {value:.2f}"
        for unit, value in zip(numbers.units, share, strict=True)
    ]
    figure = None
    if len(labels):
        figure = draw_tuning(
            numbers.maps,
            *numbers.marginals,
            labels,
            get_region_mask(study.dataset),
            title=f"{study.name}, {stage}",
            axis_names=(x.label, y.label),
        )
    rows = [
        {
            "unit": int(unit),
            "variance": float(tuning.variance[unit]),
            **{
                f"share_{factor.name}": float(shares)
                for factor, shares in zip(
                    study.dataset.space,
                    tuning.factor_shares[unit],
                    strict=True,
                )
            },
        }
        for unit in numbers.units
    ]
    return Exhibit(
        f"{study.name}_tuning_{stage}",
        f"Units of {stage}: {study.name}",
        "Activation over the grid (left) and its mean as a function of each "
        "factor, of the unit that varies most and of those that vary most "
        "in what is left. The held-out region is outlined or shaded.",
        figure,
        rows,
    )
