"""Scores, samples and error landscapes (figures 1b, 1c, 10)."""

from collections.abc import Sequence

import numpy as np

from tfcomp.datasets.solvable import (
    certify_dataset,
    mark_certified,
    measure_coverage,
    summarize_certificates,
)
from tfcomp.evaluation.image_measures import measure_border
from tfcomp.evaluation.pictures import (
    choose_spread,
    describe_planes,
    label_error,
    picture_maps,
    picture_samples,
)
from tfcomp.evaluation.reference_scores import PREDICTORS
from tfcomp.evaluation.study import Study
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.models.acting_rules import CHANNELS, describe_channels
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import list_points, show_run, to_rows
from tfcomp.statistics.measure import list_measures

# That a report begins with, beside those in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()


def make_overview(studies: Sequence[Study]) -> Section:
    """Shows what the runs reach, ID and OOD."""
    exhibits = [
        make_settings(studies),
        make_scores(studies),
        make_references(studies),
        make_coverage(studies),
        *([channels] if (channels := make_channels(studies)).rows else []),
    ]
    for study in studies:
        subsets = {"id": study.splits.is_id, "ood": study.splits.is_ood}
        exhibits += [
            make_samples(study, subset, np.flatnonzero(chosen))
            for subset, chosen in subsets.items()
            if chosen.any()
        ]
    mapped = [study for study in studies if study.has_map]
    groups: dict[tuple, list[Study]] = {}
    for study in mapped:
        key = (study.dataset.space, study.dataset.region.spec)
        groups.setdefault(key, []).append(study)
    for group in groups.values():
        exhibits += [make_landscapes(group), *map_certified(group[0])]
    exhibits += [make_border(s) for s in studies if has_border(s)]
    return Section(
        "overview",
        "Scores and errors",
        "Every grid point is scored. ID are the combinations of factors "
        "outside the held-out region, OOD those inside. A relative error is "
        "the pixel MSE divided by that of a blank image: 1 is no better than "
        "drawing nothing. Where data have no blank background, it is divided "
        "by that of the mean training image.",
        exhibits,
    )


def has_border(study: Study) -> bool:
    """Whether held-out points of several factors differ in their distance."""
    distance = study.border_distance
    reached = distance[np.isfinite(distance)]
    return len(study.dataset.space) > 1 and reached.max(initial=0) > 1


def make_settings(studies: Sequence[Study]) -> Exhibit:
    """Lists what the runs are; all flags stand at the end of the page."""
    flags = [s.run.config.identity() if s.run.path else {} for s in studies]
    names = {
        name: None
        for found in flags
        for name, value in found.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    }
    return Exhibit(
        "settings",
        "Settings",
        "The main settings, and those in which the runs differ.",
        rows=[
            {"run": study.name, "held out": study.dataset.region.spec}
            | {name: found.get(name) for name in names}
            for study, found in zip(studies, flags, strict=True)
        ],
    )


def make_scores(studies: Sequence[Study]) -> Exhibit:
    """Lists all scores."""
    return Exhibit(
        "scores",
        "Scores",
        " ".join(
            f"{m.name}: {m.about}{f', in {m.unit}' if m.unit else ''}."
            for m in list_measures("image")
        ),
        rows=[
            {"run": study.name, "subset": subset, **scores}
            for study in studies
            for subset, scores in study.evaluation.scores.items()
        ],
    )


def make_coverage(studies: Sequence[Study]) -> Exhibit:
    """Lists what training covered."""
    rows = [
        {"run": study.name, "region": study.dataset.region.spec}
        | measure_coverage(study.dataset)
        | _list_certified(study)
        for study in studies
    ]
    # Runs with more factors have more orders.
    columns = dict.fromkeys(name for row in rows for name in row)
    return Exhibit(
        "coverage",
        "What training covered",
        "Shares of what there is: of the combinations of the factors; of the "
        "values of a factor, averaged over factors; and of the pixels that "
        "change from image to image, those that do so in training. A decoder "
        "that is a free function of each pixel cannot know the others. "
        "certified_k: the share of held-out combinations that follow from the "
        "training combinations for whatever has no interactions of more than "
        "k factors; missing_k: the fewest further images that certify all.",
        rows=[{name: row.get(name) for name in columns} for row in rows],
    )


def _list_certified(study: Study) -> dict[str, float | None]:
    found = study.run.metrics.get("certificate")
    if found is None:
        data = study.dataset
        found = summarize_certificates(data, certify_dataset(data))
    names = {"certified": "certified", "missing_rank": "missing"}
    return {
        f"{short}_{order}": numbers[name]
        for order, numbers in found.items()
        for name, short in names.items()
    }


def make_channels(studies: Sequence[Study]) -> Exhibit:
    """Lists what the factors were found to do."""
    return Exhibit(
        "channels",
        "What the factors do",
        "The acting decoder lets every factor move, turn or scale an object, "
        "or change its template or color, and keeps few of these channels. "
        "Numbers are the spread of the values of the factor in a channel: of "
        "places in halves of the shorter side of the image, of angles in "
        "radians, of sizes in logarithms, of templates and colors in logits.",
        rows=[
            {
                "run": study.name,
                "factor": factor,
                "it": describe_channels({"": channels}).strip(),
                **{name: channels.get(name) for name in CHANNELS},
            }
            for study in studies
            for factor, channels in study.run.metrics.get(
                "channels", {}
            ).items()
        ],
    )


def make_references(studies: Sequence[Study]) -> Exhibit:
    """Lists the errors of the model beside those without a network."""
    return Exhibit(
        "references",
        "Errors without a network",
        "Relative errors of the model, and of predictors that know the "
        "training images alone: mean_image is their mean; additive is the "
        "best sum of an effect of every value of every factor, per pixel; "
        "nearest_id is the training image with the fewest differing factors, "
        "of these the closest one (a training point itself at points that "
        "were trained on).",
        rows=[
            {
                "run": study.name,
                "subset": subset,
                "model": study.evaluation.scores[subset]["relative_mse"],
                **{name: errors.get(subset) for name, errors in found.items()},
            }
            for study in studies
            for found in [{n: study.references.get(n, {}) for n in PREDICTORS}]
            for subset in ("id", "ood")
        ],
    )


def make_samples(study: Study, subset: str, rows: np.ndarray) -> Exhibit:
    """Shows truth and output at a spread of ID or of OOD points."""
    title = f"{study.name}, {subset.upper()}"
    points = list_points(study, {"relative_mse": study.error_ratio})
    return Exhibit(
        f"{study.name}_samples_{subset}",
        f"Samples: {title}",
        "True images (above) and what the model draws (below) at a spread of "
        f"{subset.upper()} grid points. The titles are the factor values. "
        "The gray scale reaches from 0 to 1.",
        picture_samples(study.dataset, study.evaluation, subset, title),
        [points[row] for row in choose_spread(rows)],
    )


def make_landscapes(studies: Sequence[Study]) -> Exhibit:
    """Maps the errors of runs with the same factors and region."""
    errors = {study.name: study.mapped.error_ratio for study in studies}
    first = studies[0].mapped
    suffix = "" if len(studies) > 1 else f"_{first.name}"
    return Exhibit(
        f"landscape{suffix}",
        "Error landscape",
        "Error at every combination of the factors, as a multiple of the "
        f"error of {first.dataset.reference_name} there. The held-out region "
        "is outlined, on the edges of its grid cells."
        + describe_planes(first.dataset),
        picture_maps(first.dataset, errors, label_error(first.dataset)),
        list_points(first, errors),
    )


def map_certified(study: Study) -> list[Exhibit]:
    """Maps what training determines, if that is some but not all of it."""
    data = study.mapped.dataset
    marks = {
        f"order {order}": mark_certified(data, found)
        for order, found in certify_dataset(data).items()
        if found is not None
    }
    mixed = {
        name: values
        for name, values in marks.items()
        if {0.0, 1.0} <= set(np.unique(values[np.isfinite(values)]))
    }
    if not mixed:
        return []
    return [
        show_run(
            study,
            "certified",
            "What training determines",
            "Held-out combinations that follow from the training combinations "
            "(1) for whatever has no interactions of more factors than the "
            "order, and those that do not (0). Gray: not held out."
            + describe_planes(data),
            picture_maps(data, mixed, "certified", limits=(0.0, 1.0)),
            list_points(study.mapped, mixed),
        )
    ]


def make_border(study: Study) -> Exhibit:
    """Draws the error against the distance from the training region (C3)."""
    steps = study.border_distance
    distances = np.unique(steps[np.isfinite(steps) & (steps > 0)])
    groups = [study.error_ratio[steps == step] for step in distances]
    measured = measure_border(study)
    mean = measured["border_relative_mse"]
    rho = measured["border_rank_correlation"]
    quartiles = [np.percentile(group, (25, 75)) for group in groups]
    name = "mean over positions"
    figure = draw_curves(
        distances,
        {name: mean},
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel=label_error(study.dataset),
        title=f"{study.name}, OOD",
        bands={name: tuple(np.transpose(quartiles))},
    )
    return show_run(
        study,
        "border",
        "Error and distance to ID",
        f"OOD error, as a multiple of the error of "
        f"{study.dataset.reference_name}, against the distance to the nearest "
        "ID grid point, which is the largest of the distances along the "
        "factors; another class of a categorical factor is one step away. "
        "The band reaches from the lower to "
        "the upper quartile of the positions. Spearman's rank correlation "
        f"over OOD positions: {'none' if rho is None else f'{rho:.2f}'}.",
        figure,
        to_rows(
            {
                "distance": distances,
                "positions": list(map(len, groups)),
                "relative_mse": mean,
            }
        ),
    )
