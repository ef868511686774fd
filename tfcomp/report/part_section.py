"""Embeddings, sums of parts, readers, and UMAP of stages."""

import sys
from collections.abc import Sequence

import numpy as np

from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.pictures import picture_embedding
from tfcomp.metrics.manifolds import UMAP_HINT, compute_umaps, has_umap
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.report import run_exhibits
from tfcomp.report.page import Section, make_exhibit, make_section
from tfcomp.report.run_exhibits import Row
from tfcomp.report.stage_section import show_points

PANELS = {
    "R² of a sum of parts": "additive_r2",
    "whitened": "additive_r2_whitened",
    "in the span of probes": "additive_r2_probes",
    "accuracy of probes, OOD": "accuracy_ood",
}


def make_umap(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the neighborhoods of points in every stage, by UMAP."""
    exhibits = [shown for analysis in analyses for shown in try_umap(analysis)]
    return make_section("umap", exhibits, "" if has_umap() else UMAP_HINT)


def try_umap(analysis: RunAnalysis) -> list[Exhibit]:
    """Draws UMAP of every stage if it is installed and does not fail."""
    analysis = analysis.for_pairs
    if not has_umap():
        return []
    try:
        points = compute_umaps(analysis.components)
        return [show_points(analysis, "umap", points)]
    except OSError as error:
        print(f"UMAP of {analysis.name} is left out: {error}", file=sys.stderr)
        return []


def make_embeddings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the matrices that forced rendering learned."""
    pairs = [(s, factor) for s in analyses for factor in s.embeddings]
    ranks = [
        {"run": s.name, "factor": factor, **s.embeddings[factor].summary}
        for s, factor in pairs
    ]
    exhibits = [shown for pair in pairs for shown in show_embedding(*pair)]
    return make_section("embeddings", exhibits, describe_ranks(ranks))


def show_embedding(analysis: RunAnalysis, factor: str) -> list[Exhibit]:
    """Shows the matrices of one factor, their spectrum and profiles."""
    embedding = analysis.embeddings[factor]
    figures = picture_embedding(analysis.dataset.space[factor], embedding)
    rows = {
        "embedding": [{"factor": factor, **embedding.summary}],
        "spectrum": [
            {"value": value, "mode": mode, "singular_value": float(s)}
            for (value, mode), s in np.ndenumerate(embedding.spectrum)
        ],
        "profiles": [
            {"axis": axis, "value": value, "pixel": pixel, "profile": float(p)}
            for axis, array in embedding.profiles.items()
            for (value, pixel), p in np.ndenumerate(array)
        ],
    }
    return [
        run_exhibits.show_run(
            analysis,
            kind,
            figure,
            rows[kind],
            suffix=f"_{factor}",
            factor=factor,
        )
        for kind, figure in figures.items()
    ]


@run_exhibits.tell_runs
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
    names = ("layers", "parts", "pairs", "codes")
    tables = [_show_table(analyses, name) for name in names]
    said = " ".join(map(describe_layers, analyses)).strip()
    return make_section("representations", tables, said)


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    table = _show_table(analyses, "readings")
    return make_section("readings", [table], describe_readings(table.rows))


@run_exhibits.tell_runs
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
    names = [row["layer"] for row in rows]
    name = "latents" if "latents" in names else ["", *names][-1]
    row, chance = rows[names.index(name) :][:2] if rows else ({}, {})
    if row.get("additive_r2") is None:
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


def _show_table(analyses: Sequence[RunAnalysis], name: str) -> Exhibit:
    rows: list[Row] = [
        {"run": analysis.name, **row}
        for analysis in analyses
        for row in analysis.run.tables.get(name, ())
    ]
    figure = None
    if rows and name == "layers":
        drawn = [
            row | {"stage": row["layer"], "curve": row["classes"]}
            for row in rows
        ]
        figure = run_exhibits.draw_stage_rows(drawn, PANELS, "share")
    return make_exhibit(f"table_{name}", figure, rows)
