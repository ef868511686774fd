"""Sections on outputs: superposition, kernels, gaps, and inversion."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tfcomp.datasets.grid_maps import Curve
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Exhibit, is_narrow
from tfcomp.figures.image_rows import draw_rows
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.metrics import interpolation, kernels, schmidt, superposition
from tfcomp.metrics.interpolation import Interpolation
from tfcomp.metrics.inversion import (
    MODEL,
    ON_GRID,
    Inversion,
    invert_model,
    list_targets,
)
from tfcomp.metrics.registry import mean_or_none
from tfcomp.metrics.run_analysis import FEW_POINTS, RunAnalysis
from tfcomp.report.page import (
    CLOSE,
    Row,
    Section,
    describe_runs,
    list_points,
    make_exhibit,
    make_section,
    show_run,
)
from tfcomp.representations.readers import Reader, train_id_reader

Grams = dict[str, np.ndarray]
Gap = tuple[RunAnalysis, Curve, Interpolation]

# Columns of the table, and what they show.
ALIGNMENTS = {
    "factorized": "alignment_factorized",
    "conjunctive": "alignment_conjunctive",
    "factorized (smooth)": "alignment_factorized_smooth",
    "conjunctive (smooth)": "alignment_radial",
}
TRUTH = "truth"  # among rows of superposition scores
UNTRAINED = "before training"
# Share of the way from the R² of the true images to 1, from which outputs are
# called superpositions.
PARTLY = 0.1
MAX_IMAGES = 9  # in a gap
READER = "reader of ID images"
NARROW_IMAGES = 3


def make_superposition(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows whether OOD outputs are sums of training outputs."""
    rows: list[Row] = []
    for analysis in analyses:
        if analysis.dataset.is_pixels and analysis.has_hole:
            rows += list_scores(analysis)
    table = make_exhibit(
        "superposition",
        rows=rows,
        memories=superposition.MAX_MEMORIES,
    )
    return make_section(
        "superposition",
        [table],
        describe_runs(rows, describe_superposition),
        points=superposition.MAX_POINTS,
    )


def list_scores(analysis: RunAnalysis) -> list[Row]:
    """Returns superposition scores of outputs, true images, and the start."""
    sources = {
        "model": (analysis.superposition, analysis.bright_outputs),
        TRUTH: (analysis.composed, analysis.bright_truth),
    }
    before = analysis.untrained
    if before:
        sources[UNTRAINED] = (before.superposition, before.bright_outputs)

    is_ood = analysis.splits.is_ood
    rows: list[Row] = []
    for name, (scores, outputs) in sources.items():
        inputs_r2 = np.full(int(is_ood.sum()), np.nan)
        if name != UNTRAINED and analysis.superposed_inputs is not None:
            inputs_r2 = superposition.score_combinations(
                outputs[is_ood],
                analysis.superposed_inputs,
                analysis.bright_outputs[analysis.splits.is_id],
            )
        inputs_r2 = inputs_r2[np.isfinite(inputs_r2)]

        summary = superposition.summarize_superposition(scores)
        row: Row = {"run": analysis.name, "OOD outputs": name}
        for predictor in superposition.PREDICTORS:
            row[predictor] = summary[f"{predictor}_r2"]
        row["superposed_inputs"] = mean_or_none(inputs_r2)
        row["blank_fraction"] = summary["blank_fraction"]
        rows.append(row)
    return rows


def describe_superposition(rows: Sequence[Row]) -> str:
    """Describes if outputs are sums of memories, beside the true images."""
    r2 = {}
    for row in rows:
        if row["superposition"] is not None:
            r2[row["OOD outputs"]] = row["superposition"]
    if "model" not in r2 or TRUTH not in r2:
        return "no held-out output is bright enough to be scored"

    numbers = "; ".join(f"{name} {score:.2f}" for name, score in r2.items())
    gain = r2["model"] - r2[TRUTH]
    way = max(1 - r2[TRUTH], 1e-9)
    share = gain / way
    if share < PARTLY:
        return (
            "held-out outputs are no more superpositions than the true images "
            f"are (R²: {numbers})"
        )
    return (
        f"held-out outputs are {share:.0%} of the way from true images to sums "
        f"of training outputs that share a factor value (R²: {numbers})"
    )


def make_kernels(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which ideal kernel the outputs of a run resemble."""
    exhibits = []
    alignments: list[Row] = []
    regressions: list[Row] = []
    for analysis in analyses:
        # Of all pairs of points, so a sample is subsampled.
        analysis = analysis.for_pairs
        if not (analysis.dataset.is_pixels and analysis.has_hole):
            continue
        grams = compute_grams(analysis.bright_outputs)
        exhibits.append(make_matrices(analysis, grams))

        truth = kernels.compute_cosine_gram(analysis.bright_truth)
        grams["truth, cosine"] = truth
        alignments += _list_alignments(analysis, grams)
        if analysis.is_plane:
            regressions += _list_regressions(analysis)
        if analysis.splits.is_complete:
            exhibits.append(_list_terms(analysis, grams))
    tables = [
        make_exhibit("kernel_alignment", rows=alignments),
        make_exhibit("kernel_regression", rows=regressions),
    ]
    return make_section(
        "kernels",
        tables + exhibits,
        describe_runs(alignments, _describe_kernels),
        points=FEW_POINTS,
    )


def _list_alignments(analysis: RunAnalysis, grams: Grams) -> list[Row]:
    rows = []
    for name, gram in grams.items():
        scores = analysis.align(gram)
        row: Row = {"run": analysis.name, "similarity": name}
        for column, score in ALIGNMENTS.items():
            row[column] = scores.get(score)
        rows.append(row)
    return rows


def _list_regressions(analysis: RunAnalysis) -> list[Row]:
    rows: list[Row] = []
    for target, fits in analysis.kernel_fits.items():
        for kernel, fit in fits.items():
            row = {
                "run": analysis.name,
                "target": target,
                "kernel": kernel,
            }
            row |= vars(fit)
            row["scales"] = " ".join(map("{:g}".format, fit.scales))
            rows.append(row)
    return rows


def _describe_kernels(rows: Sequence[Row]) -> str:
    """Describes alignments of outputs beside the true images' alignments."""
    names = {"cosine": "outputs", "truth, cosine": "true images"}
    texts = []
    for row in rows:
        name = names.get(row["similarity"])
        if name is None:
            continue
        factorized = row["factorized"]
        conjunctive = row["conjunctive"]
        if factorized is not None and conjunctive is not None:
            texts.append(
                f"{name} {factorized:.2f} with the factorized kernel and "
                f"{conjunctive:.2f} with the conjunctive one"
            )
    if not texts:
        return ""
    return f"alignment of {', of '.join(texts)}"


def compute_grams(outputs: np.ndarray) -> Grams:
    """Computes three similarities of all outputs, [n, n] each."""
    distances = kernels.compute_distance_gram(outputs)
    largest = np.fmax.reduce(distances, axis=None, initial=0)
    if largest > 0:
        distances = distances / largest
    return {
        "cosine": kernels.compute_cosine_gram(outputs),
        "L2": 1 - distances,
        "overlap": kernels.compute_overlap_gram(outputs),
    }


def make_matrices(
    analysis: RunAnalysis, grams: Mapping[str, np.ndarray]
) -> Exhibit:
    """Shows Gram matrices beside the ideal ones, ID first, then OOD.

    Args:
        analysis: The run.
        grams: Similarities [n, n] of outputs.
    """
    is_ood = analysis.splits.is_ood
    matrices = {
        **grams,
        "binary factorized": kernels.make_factorized_kernel(analysis.index),
        "conjunctive": kernels.make_conjunctive_kernel(analysis.index),
    }
    order = np.argsort(is_ood, kind="stable")
    for name, gram in matrices.items():
        matrices[name] = gram[np.ix_(order, order)]
    figure = draw_gram_matrices(
        matrices,
        num_id=int((~is_ood).sum()),
        title=analysis.name,
    )
    return show_run(analysis, "gram", figure)


def _list_terms(analysis: RunAnalysis, grams: Grams) -> Exhibit:
    """Lists the variance of kernels by their terms (appendix A.5)."""
    shape = analysis.dataset.space.shape
    rows = []
    for name, gram in grams.items():
        row = {"run": analysis.name, "similarity": name}
        row |= schmidt.summarize_anova(gram, shape)
        if analysis.is_plane:
            row |= schmidt.summarize_schmidt(gram, shape)
            row |= schmidt.summarize_schmidt(
                schmidt.center_kernel(gram),
                shape,
                name="schmidt_centered",
            )
        rows.append(row)
    return show_run(analysis, "schmidt", rows=rows)


def make_gaps(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the outputs across a held-out range of one factor."""
    analyses = [a for a in analyses if a.dataset.is_pixels and a.curves]
    summaries = []
    images = []
    for gap in list_scored_gaps(analyses):
        summaries.append(summarize_gap(*gap))
        images.append(make_images(*gap))
    exhibits = [make_exhibit("interpolation", rows=summaries)]
    for analysis in analyses:
        exhibit = show_run(
            analysis,
            "error_curve",
            pictures.picture_error_curve(analysis.dataset, analysis.error),
            list_points(analysis, {"mse": analysis.error}),
            factor=analysis.curves[0].factor.name,
        )
        exhibits.append(exhibit)
    finding = describe_runs(summaries, describe_gaps)
    return make_section("gaps", exhibits + images, finding)


def list_scored_gaps(analyses: Sequence[RunAnalysis]) -> list[Gap]:
    """Returns the curves with a held-out range, and their scores."""
    gaps = []
    for analysis in analyses:
        for curve in analysis.gaps:
            gaps.append((analysis, curve, analysis.score_gap(curve)))
    return gaps


def make_images(
    analysis: RunAnalysis,
    curve: Curve,
    scores: Interpolation,
) -> Exhibit:
    """Shows truth, output and interpolation in a gap (figures 9c, 9d).

    Args:
        analysis: The run.
        curve: One of its curves.
        scores: The scores of the gap, as of `RunAnalysis.score_gap`.
    """
    truth = analysis.evaluation.truth[curve.rows]
    is_ood = analysis.splits.is_ood[curve.rows]
    linear = interpolation.interpolate_edges(truth, is_ood, curve.factor.cycle)

    num_rows = len(scores.rows)
    max_images = NARROW_IMAGES if is_narrow() else MAX_IMAGES
    count = min(max_images, num_rows)
    last = num_rows - 1
    spread = np.linspace(0, last, count)
    spread = spread.round().astype(int)
    before = scores.edges[0][0]
    after = scores.edges[-1][1]
    places = np.array([before, *scores.rows[spread], after])  # on the curve
    points = curve.rows[places]

    labels = [other.label for other in analysis.curves]
    name = analysis.name
    suffix = ""
    if len(labels) > 1:
        name = f"{name}, {curve.label}"
        # Names of levels may have characters that no file name can have.
        suffix = f"_{labels.index(curve.label)}"
    figure = draw_rows(
        {
            analysis.dataset.truth_label: truth[places],
            "output": analysis.evaluation.images[points],
            "edges, linear": linear[places],
        },
        title=name,
        first_row=analysis.dataset.first_row,
        column_titles=pictures.describe_points(analysis.dataset, points),
    )
    return show_run(
        analysis,
        "gap_images",
        figure,
        suffix=suffix,
        run=name,
    )


def summarize_gap(
    analysis: RunAnalysis,
    curve: Curve,
    scores: Interpolation,
) -> Row:
    """Summarizes the scores of a curve with a gap for the table.

    Args:
        analysis: The run.
        curve: One of its curves.
        scores: The scores of the gap, as of `RunAnalysis.score_gap`.
    """
    errors = analysis.error[curve.rows[scores.rows]]
    return {
        "run": analysis.name,
        "curve": curve.label,
        **interpolation.summarize_interpolation(scores),
        "ood_mse": float(errors.mean()),
    }


def describe_gaps(rows: Sequence[Row]) -> str:
    """Describes if outputs in a gap are interpolations of its edges."""
    columns = ["interpolation_r2", "truth_r2"]
    scores = pd.DataFrame(rows)[columns].astype(float).dropna()
    if scores.empty:
        return ""
    output, truth = scores.mean()
    comparison = "no more"
    if output > truth + CLOSE:
        comparison = "more"
    elif output < truth - CLOSE:
        comparison = "less"
    return (
        f"outputs in the gap are {comparison} linear combinations of the edge "
        f"images than the true images are (R² {output:.2f}; truth {truth:.2f})"
    )


def invert_run(
    analysis: RunAnalysis,
    reader: Reader | None = None,
) -> Inversion:
    """Inverts a model, and compares it with a network that reads images.

    Args:
        analysis: Of the model.
        reader: A reader of ID images; by default one is trained.
    """
    dataset = analysis.dataset
    if reader is None:
        reader = train_id_reader(dataset)
    target = list_targets(dataset)
    index = reader.read(target.images)
    readings = zip(dataset.space, index.T, strict=True)
    columns = [factor.values()[places] for factor, places in readings]
    answers = {READER: np.stack(columns, axis=1)}
    return invert_model(analysis, target, answers)


def make_inversion(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows which factors of true images a model finds."""
    rows: list[Row] = []
    maps = []
    for analysis in analyses:
        if not analysis.dataset.is_pixels:
            continue
        inversion = invert_run(analysis)
        for row in inversion.rows:
            rows.append({"run": analysis.name, **row})
        if analysis.has_map and analysis.splits.is_complete:
            maps.append(_map_error(analysis, inversion))
    table = make_exhibit("table_inversion", rows=rows)
    finding = describe_runs(rows, _describe_inversion)
    return make_section("inversion", [table, *maps], finding)


def _map_error(analysis: RunAnalysis, inversion: Inversion) -> Exhibit:
    """Maps the error of the factors that a model finds."""
    data = analysis.dataset
    most = max(data.space.shape)
    errors = {analysis.name: np.minimum(inversion.error, most)}
    return show_run(
        analysis,
        "inversion",
        pictures.picture_maps(data, errors, label="error (steps)"),
        list_points(analysis, {"error": errors[analysis.name]}),
        most=most,
        planes=pictures.describe_planes(data),
    )


def _describe_inversion(rows: Sequence[Row]) -> str:
    """Describes the share of held-out images whose factors are found."""
    subset = rows[-1]["subset"]  # held-out ones come last, if there are any
    shares = []
    for row in rows:
        is_total = row["factor"] == "all" and row["level"] == "any"
        is_source = row["source"] != ON_GRID
        if row["subset"] == subset and is_total and is_source:
            name = row["source"]
            if name == MODEL:
                name = "by the model"
            shares.append(f"{row['found']:.0%} {name}")
    listed = ", ".join(shares)
    return f"all factors of {subset.upper()} images are found: {listed}"
