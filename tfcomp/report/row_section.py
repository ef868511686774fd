"""Outputs of several runs at the same held-out positions (figures 4b, 7b)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.evaluation.pictures import (
    choose_spread,
    describe_points,
    get_pixel_mask,
)
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.report.page import Section
from tfcomp.statistics.setting_table import choose_flags, make_label


def make_row_comparison(studies: Sequence[Study]) -> Section:
    """Rows of images for every group of runs with the same held-out images."""
    groups: dict[tuple, list[Study]] = {}
    for study in studies:
        truth = study.evaluation.truth[study.splits.is_ood]
        key = (study.dataset.space, study.dataset.region.spec, truth.tobytes())
        groups.setdefault(key, []).append(study)
    exhibits = [
        make_output_rows(group)
        for group in groups.values()
        if len(group) > 1 and group[0].splits.is_ood.any()
    ]
    return Section(
        "rows",
        "Held-out positions side by side",
        "What several runs draw at the same held-out combinations.",
        exhibits,
    )


def make_output_rows(
    studies: Sequence[Study], labels: Sequence[str] = ()
) -> Exhibit:
    """The truth in the first row, then a row for each of comparable runs.

    The labels are theirs, by default names or what tells the runs apart. The
    table has the OOD scores of every run against each truth that it is
    compared with. For stripes and bumps these are the bump (`ood`) and the
    plus that two stripes make (`ood_plus`).
    """
    first = studies[0]
    shown = choose_spread(np.flatnonzero(first.splits.is_ood))
    settings = [study.run.config.identity() for study in studies]
    flags = choose_flags(settings)
    names = [study.name for study in studies]
    if len(flags) == 1:  # a series, of which the values say more than names
        names = [f"{flags[0]} {make_label(s, flags)}" for s in settings]
    images = [study.evaluation.images[shown] for study in studies]
    truth = first.evaluation.truth[shown]
    figure = draw_rows(
        {"truth": truth, **dict(zip(labels or names, images, strict=True))},
        first.splits.grid[shown] if first.dataset.has_position else None,
        get_pixel_mask(first.dataset),
        title="Held-out positions",
        first_row=first.dataset.first_row,
        column_titles=describe_points(first.dataset, shown),
    )
    rows = [
        {
            "run": study.name,
            **{flag: setting[flag] for flag in flags},
            "subset": subset,
            **scores,
        }
        for study, setting in zip(studies, settings, strict=True)
        for subset, scores in study.evaluation.scores.items()
        if subset.startswith("ood")
    ]
    return Exhibit(
        f"held_out_rows_{first.name}",
        f"Held-out positions: region {first.dataset.region.spec}",
        "Outputs at held-out combinations; column titles are the factor "
        "values. The first row is the true image. The table has the scores "
        "over all held-out combinations.",
        figure,
        rows,
    )
