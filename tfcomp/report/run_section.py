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
from tfcomp.metrics.references import measure_border
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
WEAK = 0.3  # smaller correlations support no conclusion
# Names in the table of coverage, and in the certificates of `metrics.json`.
CERTIFICATE = {
    "certified": "certified",
    "missing": "missing_rank",
    "noise": "noise_mean",  # older runs lack it
}


def make_runs(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows settings, coverage and flags."""
    settings = _list_settings(analyses)
    coverage = [_measure_coverage(analysis) for analysis in analyses]
    tables = [
        make_exhibit("settings", rows=settings),
        make_exhibit("coverage", rows=coverage),
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
    """Lists the main settings, and those in which runs differ."""
    flags = []
    values: dict[str, set[str]] = {}
    for analysis in analyses:
        is_run = analysis.run.path is not None
        flags.append(analysis.run.config.identity() if is_run else {})
        for name, value in flags[-1].items():
            values.setdefault(name, set()).add(str(value))
    names = [n for n in values if n in SETTINGS or len(values[n]) > 1]
    rows = []
    for analysis, own_flags in zip(analyses, flags, strict=True):
        row = {"run": analysis.name, "held out": analysis.dataset.region.spec}
        rows.append(row | {name: own_flags.get(name) for name in names})
    return rows


def _measure_coverage(analysis: RunAnalysis) -> Row:
    data = analysis.dataset
    row: Row = {"run": analysis.name, "region": data.region.spec}
    row |= solvable.measure_coverage(data)
    orders = analysis.run.metrics.get("certificate")
    if orders is None:
        certificates = solvable.certify_dataset(data)
        orders = solvable.summarize_certificates(data, certificates)
    for order, numbers in orders.items():
        for name, key in CERTIFICATE.items():
            row[f"{name}_{order}"] = numbers.get(key)
    copies = describe_copies(data.copies.summary)
    if copies:
        row["copies"] = copies
    return row


def make_output_rows(
    analyses: Sequence[RunAnalysis],
    labels: Sequence[str] = (),
    *,
    rows: np.ndarray | None = None,
    name: str = "held_out_rows",
    title: str = "Held-out positions",
) -> Exhibit:
    """Shows the truth, then a row for each run, with scores of each truth.

    Args:
        analyses: Runs on the same data.
        labels: Labels of the runs, by default their names.
        rows: The points that are shown, by default a spread of held-out ones.
        name: How the name of the files begins.
        title: The heading, before the region.
    """
    first = analyses[0]
    data = first.dataset
    if rows is None:
        rows = pictures.choose_spread(np.flatnonzero(first.splits.is_ood))
    labels = labels or [analysis.name for analysis in analyses]
    truth = first.evaluation.truth[rows]
    images = {data.truth_label: data.to_pictures(truth)}
    for label, analysis in zip(labels, analyses, strict=True):
        images[label] = data.to_pictures(analysis.evaluation.images[rows])
    figure = draw_rows(
        images,
        first.splits.grid[rows] if data.has_position else None,
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
    exhibits = make_landscapes(analyses)
    border = []
    for analysis in analyses:
        if len(analysis.dataset.space) > 1:
            row = {"run": analysis.name, **measure_border(analysis)}
            if len(row.get("border_relative_mse", ())) > 1:
                border.append(row)
    if border:
        exhibits.append(_make_border(analyses, border))

    definitions = []
    for metric in list_metrics("image"):
        unit = f", in {metric.unit}" if metric.unit else ""
        definitions.append(f"{metric.name}: {metric.about}{unit}.")
    scores = make_exhibit(
        "all_scores", rows=_list_scores(analyses), scores=" ".join(definitions)
    )
    return make_section("errors", [*exhibits, scores], describe_border(border))


def make_landscapes(
    analyses: Sequence[RunAnalysis], kind: str = "landscape"
) -> list[Exhibit]:
    """Maps errors: an exhibit for runs with the same factors and region."""
    mapped = [analysis for analysis in analyses if analysis.has_map]
    groups = run_exhibits.group_runs(mapped)
    exhibits = []
    for group in groups:
        errors = {a.name: a.for_maps.error_ratio for a in group}
        first = group[0].for_maps
        data = first.dataset
        figure = pictures.picture_maps(data, errors, pictures.label_error(data))
        is_whole = len(groups) == 1 and len(mapped) > 1
        suffix = "" if is_whole else f"_{to_file_name(first.name)}"
        exhibit = make_exhibit(
            kind,
            figure,
            run_exhibits.list_points(first, errors),
            name=f"{kind}{suffix}",
            reference=data.reference_name,
            planes=pictures.describe_planes(data),
        )
        exhibits.append(exhibit)
    return exhibits


def _make_border(
    analyses: Sequence[RunAnalysis], border: Sequence[Row]
) -> Exhibit:
    rows = []
    curves = {}
    for row in border:
        errors = row["border_relative_mse"]
        distances = range(1, len(errors) + 1)
        curves[row["run"]] = pd.Series(errors, distances, float)
        for distance, error in zip(distances, errors, strict=True):
            point = {"run": row["run"], "distance": distance}
            rows.append({**point, "relative_mse": error})
    names = [a.dataset.reference_name for a in analyses if a.name in curves]
    reference = " or ".join(dict.fromkeys(names))
    figure = draw_curves(
        pd.DataFrame(curves),
        xlabel="distance to the nearest ID grid point (grid steps)",
        ylabel=f"MSE / MSE of {reference}",
    )
    return make_exhibit("border", figure, rows, reference=reference)


@run_exhibits.tell_runs
def describe_border(rows: Sequence[Row]) -> str:
    """Describes if the OOD error rises with the distance to ID."""
    correlation = rows[0]["border_rank_correlation"]
    if correlation is None:
        return ""
    if abs(correlation) < WEAK:
        relation = "hardly depends on"
    elif correlation > 0:
        relation = "rises with"
    else:
        relation = "falls with"
    return (
        f"the OOD error {relation} the distance to ID (rank correlation "
        f"{correlation:.2f})"
    )
