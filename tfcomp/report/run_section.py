"""Settings of runs, their outputs, and errors by combination (figure 1b)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfcomp.datasets import solvable
from tfcomp.datasets.notes import describe_copies
from tfcomp.figures import pictures
from tfcomp.figures.curve_plots import draw_curves
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.image_rows import draw_rows
from tfcomp.metrics.distances import measure_border
from tfcomp.metrics.registry import list_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row
from tfcomp.report.verbalize import describe_common, to_file_name

# Flags that the table always has, beside flags in which runs differ.
SETTINGS = "dataset encoding model depth width epochs seed".split()
OF_VECTORS = (
    "Images are embeddings, shown by the nearest item's picture, else in "
    "shades of gray; outputs are sums of parts that are fitted to ID."
)


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings = _list_settings(analyses)
    tables = [
        make_exhibit("settings", rows=settings),
        make_exhibit("coverage", rows=_list_coverage(analyses)),
        make_exhibit("channels", rows=_list_channels(analyses)),
    ]
    texts = {a.name: a.run.description for a in analyses}
    return make_section("runs", tables, describe_common(settings), texts)


def _list_channels(analyses: Sequence[RunAnalysis]) -> list[Row]:
    """Returns what decoders found factors to do: a column for each term."""
    rows: list[Row] = []
    terms: dict[str, None] = {}  # of all factors, in the order of the first
    for analysis in analyses:
        channels = analysis.run.metrics.get("channels", {})
        for factor, numbers in channels.items():
            rows.append({"run": analysis.name, "factor": factor, **numbers})
            terms |= dict.fromkeys(numbers)
    columns = dict.fromkeys(["run", "factor", *terms])
    return [columns | row for row in rows]


def _list_settings(analyses: Sequence[RunAnalysis]) -> list[Row]:
    flags = [s.run.config.identity() if s.run.path else {} for s in analyses]
    names = dict.fromkeys(
        name
        for settings in flags
        for name, value in settings.items()
        if name in SETTINGS or any(f.get(name, value) != value for f in flags)
    )
    return [
        {"run": analysis.name, "held out": analysis.dataset.region.spec}
        | {name: settings.get(name) for name in names}
        for analysis, settings in zip(analyses, flags, strict=True)
    ]


def _list_coverage(analyses: Sequence[RunAnalysis]) -> list[Row]:
    rows: list[Row] = []
    for analysis in analyses:
        data = analysis.dataset
        row: Row = {"run": analysis.name, "region": data.region.spec}
        row |= solvable.measure_coverage(data) | _list_certified(analysis)
        if copies := describe_copies(data.copies.summary):
            row["copies"] = copies
        rows.append(row)
    return rows


def _list_certified(analysis: RunAnalysis) -> dict[str, float | None]:
    orders = analysis.run.metrics.get("certificate")
    if orders is None:
        certificates = solvable.certify_dataset(analysis.dataset)
        orders = solvable.summarize_certificates(analysis.dataset, certificates)
    names = {
        "certified": "certified",
        "missing": "missing_rank",
        "noise": "noise_mean",  # older runs lack it
    }
    return {
        f"{short}_{order}": numbers.get(name)
        for order, numbers in orders.items()
        for short, name in names.items()
    }


def make_output_rows(
    analyses: Sequence[RunAnalysis],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """Shows the truth, then a row for each run, with scores of each truth."""
    first = analyses[0]
    splits, data = first.splits, first.dataset
    if rows is None:
        rows = pictures.choose_spread(np.flatnonzero(splits.is_ood))
    labels = labels or [analysis.name for analysis in analyses]
    truth = data.to_pictures(first.evaluation.truth[rows])
    images = {data.truth_label: truth}
    for label, analysis in zip(labels, analyses, strict=True):
        images[label] = data.to_pictures(analysis.evaluation.images[rows])
    figure = draw_rows(
        images,
        splits.grid[rows] if data.has_position else None,
        pictures.get_pixel_mask(data),
        first_row=data.first_row,
        column_titles=pictures.title_points(data, rows),
    )
    return make_exhibit(
        "samples",
        figure,
        _list_scores(analyses),
        name=f"{name}_{to_file_name(first.name)}",
        heading=title,
        region=data.region.spec,
        vectors="" if data.is_pixels else OF_VECTORS,
    )


def _list_scores(analyses: Sequence[RunAnalysis]) -> list[Row]:
    return [
        {"run": analysis.name, "subset": subset, **scores}
        for analysis in analyses
        for subset, scores in analysis.evaluation.scores.items()
    ]


def make_errors(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows errors by combination, and by distance to ID."""
    wide = [s for s in analyses if len(s.dataset.space) > 1]
    border = [{"run": s.name, **measure_border(s)} for s in wide]
    border = [r for r in border if len(r.get("border_relative_mse", ())) > 1]
    about = " ".join(
        f"{m.name}: {m.about}{f', in {m.unit}' if m.unit else ''}."
        for m in list_metrics("image")
    )
    rows = _list_scores(analyses)
    exhibits = make_landscapes(analyses)
    if border:
        exhibits.append(_make_border(analyses, border))
    exhibits.append(make_exhibit("all_scores", rows=rows, scores=about))
    said = run_exhibits.describe_border(border)
    return make_section("errors", exhibits, said)


def make_landscapes(
    analyses: Sequence[RunAnalysis], kind: str = "landscape"
) -> list[Exhibit]:
    """Maps errors: an exhibit for runs with the same factors and region."""
    mapped = [analysis for analysis in analyses if analysis.has_map]
    groups = run_exhibits.group_runs(mapped)
    is_joint = len(groups) == 1 and len(mapped) > 1
    return [_make_landscape(group, kind, is_joint) for group in groups]


def _make_landscape(
    analyses: Sequence[RunAnalysis], kind: str, is_joint: bool
) -> Exhibit:
    errors = {
        analysis.name: analysis.for_maps.error_ratio for analysis in analyses
    }
    first = analyses[0].for_maps
    suffix = "" if is_joint else f"_{to_file_name(first.name)}"
    return make_exhibit(
        kind,
        pictures.picture_maps(
            first.dataset, errors, pictures.label_error(first.dataset)
        ),
        run_exhibits.list_points(first, errors),
        name=f"{kind}{suffix}",
        reference=first.dataset.reference_name,
        planes=pictures.describe_planes(first.dataset),
    )


def _make_border(
    analyses: Sequence[RunAnalysis], border: Sequence[Row]
) -> Exhibit:
    rows = [
        {"run": row["run"], "distance": distance, "relative_mse": error}
        for row in border
        for distance, error in enumerate(row["border_relative_mse"], 1)
    ]
    table = pd.DataFrame(rows).pivot(
        index="distance", columns="run", values="relative_mse"
    )
    shown = [s.dataset.reference_name for s in analyses if s.name in table]
    reference = " or ".join(dict.fromkeys(shown))
    figure = draw_curves(
        table[[row["run"] for row in border]].astype(float),
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel=f"MSE / MSE of {reference}",
    )
    return make_exhibit("border", figure, rows, reference=reference)
