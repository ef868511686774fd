"""Embeddings, sums of parts, readers, and UMAP of stages."""

import sys
from collections.abc import Sequence

import numpy as np

from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.pictures import picture_embedding
from tfcomp.metrics.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row, draw_stage_rows, show_run, tell_runs
from tfcomp.report.stage_section import show_points

PANELS = {
    "R² of a sum of parts": "additive_r2",
    "whitened": "additive_r2_whitened",
    "in the span of probes": "additive_r2_probes",
    "accuracy of probes, OOD": "accuracy_ood",
}


def make_umap(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    exhibits = []
    for analysis in analyses:
        exhibits += try_umap(analysis)
    return make_section("umap", exhibits, "" if has_umap() else UMAP_HINT)


def try_umap(analysis: RunAnalysis) -> list[Exhibit]:
    """Draws UMAP of every stage if it is installed and does not fail."""
    if not has_umap():
        return []
    analysis = analysis.for_pairs
    try:
        points = compute_umaps(analysis.components)
    except OSError as error:
        print(f"UMAP of {analysis.name} is left out: {error}", file=sys.stderr)
        return []
    return [show_points(analysis, "umap", points)]


def make_embeddings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the matrices that forced rendering learned."""
    exhibits = []
    summaries = []
    for analysis in analyses:
        for factor, embedding in analysis.embeddings.items():
            exhibits += show_embedding(analysis, factor)
            row = {"run": analysis.name, "factor": factor, **embedding.summary}
            summaries.append(row)
    return make_section("embeddings", exhibits, describe_ranks(summaries))


def show_embedding(analysis: RunAnalysis, factor: str) -> list[Exhibit]:
    """Shows the matrices of one factor, their spectrum and profiles."""
    embedding = analysis.embeddings[factor]
    profiles: list[Row] = []
    for axis, array in embedding.profiles.items():
        for (value, pixel), number in np.ndenumerate(array):
            row = {"axis": axis, "value": value, "pixel": pixel}
            profiles.append({**row, "profile": float(number)})
    spectrum = [
        {"value": value, "mode": mode, "singular_value": float(number)}
        for (value, mode), number in np.ndenumerate(embedding.spectrum)
    ]
    rows = {
        "embedding": [{"factor": factor, **embedding.summary}],
        "spectrum": spectrum,
        "profiles": profiles,
    }
    figures = picture_embedding(analysis.dataset.space[factor], embedding)
    return [
        show_run(
            analysis,
            kind,
            figure,
            rows[kind],
            suffix=f"_{factor}",
            factor=factor,
        )
        for kind, figure in figures.items()
    ]


@tell_runs
def describe_ranks(rows: Sequence[Row]) -> str:
    """Describes the effective ranks of embeddings, by factor."""
    ranks = [
        f"{row['factor']} {row['effective_rank']:.1f}"
        for row in rows
        if row.get("effective_rank") is not None
    ]
    return f"effective rank of {', '.join(ranks)}" if ranks else ""


def make_representations(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows how far layers are sums of parts, and their disentanglement."""
    rows = _list_rows(analyses, "layers")
    curves = [
        {**row, "stage": row["layer"], "curve": row["classes"]} for row in rows
    ]
    figure = draw_stage_rows(curves, PANELS, "share")
    exhibits = [make_exhibit("table_layers", figure, rows)]
    for name in ("parts", "pairs", "codes"):
        rows = _list_rows(analyses, name)
        exhibits.append(make_exhibit(f"table_{name}", rows=rows))
    finding = " ".join(map(describe_layers, analyses)).strip()
    return make_section("representations", exhibits, finding)


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    rows = _list_rows(analyses, "readings")
    table = make_exhibit("table_readings", rows=rows)
    return make_section("readings", [table], describe_readings(rows))


def _list_rows(analyses: Sequence[RunAnalysis], name: str) -> list[Row]:
    return [
        {"run": analysis.name, **row}
        for analysis in analyses
        for row in analysis.run.tables.get(name, ())
    ]


@tell_runs
def describe_readings(rows: Sequence[Row]) -> str:
    """Describes how often a reader finds all factors."""
    shares = [
        f"{row['accuracy']:.1%} of {row['subset'].upper()} (true images "
        f"{row['ceiling']:.1%})"
        for row in rows
        if row["level"] == "any" and row["factor"] == "all"
    ]
    return f"all factors are read right in {' and '.join(shares)}"


def describe_layers(analysis: RunAnalysis) -> str:
    """Describes the latents, or the last layer, as sums of parts."""
    rows = analysis.run.tables.get("layers", [])
    if not rows:
        return ""
    names = [row["layer"] for row in rows]
    name = "latents" if "latents" in names else names[-1]
    place = names.index(name)
    row = rows[place]
    chance = rows[place + 1]  # with permuted classes
    if row["additive_r2"] is None:
        return ""
    text = (
        f"{analysis.name}: a sum of parts explains {row['additive_r2']:.1%} of "
        f"the variance in {name} ({chance['additive_r2']:.1%} with permuted "
        "classes)"
    )
    if row["composed_ood"] is None:
        return f"{text}."
    return (
        f"{text}; held-out embeddings composed of parts have "
        f"{row['composed_ood']:.1%} of the error of the mean (the nearest ID "
        f"embedding {row['nearest_ood']:.1%})."
    )
