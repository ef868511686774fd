"""Sections of representations and of readings, from the tables of models."""

from collections.abc import Sequence

from tfcomp.evaluation.run_analysis import RunAnalysis
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import Row, draw_stage_rows

PANELS = {
    "R² of a sum of parts": "additive_r2",
    "whitened": "additive_r2_whitened",
    "in the span of probes": "additive_r2_probes",
    "accuracy of probes, OOD": "accuracy_ood",
}
CAPTIONS = {
    "layers": (
        "Layers",
        "additive_r2: share of the variance that a sum of parts, one for each "
        "factor value, explains (least squares on one-hot codes); whitened: "
        "all principal components count alike; probes: within the span of "
        "linear probes. composed: error of embeddings composed of parts that "
        "are fitted to ID, over the error of the ID mean; nearest_ood: of the "
        "nearest ID embedding. pair_share: interactions of two factors, on "
        "complete grids. accuracy: linear discriminants of the factors, fitted "
        "to four fifths of ID. alignment: of cosines with ideal kernels over "
        "OOD. Rows with permuted classes are the chance level.",
    ),
    "parts": (
        "Parts of factors",
        "Share of the variance, effective rank, and accuracy of the probe.",
    ),
    "pairs": (
        "Angles between parts",
        "cosine: root mean square of cosines between the parts of two factors, "
        "weighted by squared length; angle: the smallest principal angle of "
        "their spans (of 99% of the variance), in degrees. Orthogonal parts "
        "have 0 and 90.",
    ),
    "codes": (
        "Disentanglement",
        "DCI (gradient boosting of scikit-learn), MIG, SAP and FactorVAE's "
        "score of the latents; 1 is best.",
    ),
    "readings": (
        "Factors that a reader finds",
        "Share of outputs in which a network that was trained on true images "
        "finds the factor that was asked for; ceiling: the same of true "
        "images; near: ordered factors may be one step off. level: the number "
        "of factors in which a combination differs from the nearest training "
        "combination. all: all factors are right.",
    ),
}


def make_representations(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows how far layers are sums of parts, and their disentanglement."""
    names = ("layers", "parts", "pairs", "codes")
    return Section(
        "representations",
        "Sums of parts, layer by layer",
        "Is a representation a sum of parts of its factors, and does the sum "
        "hold for combinations that were held out?",
        [e for name in names for e in _make_exhibits(analyses, name)],
        " ".join(map(describe_layers, analyses)).strip(),
    )


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    found = [
        f"{analysis.name}: all factors are read right in "
        f"{row['accuracy']:.1%} of {row['subset'].upper()} (true images "
        f"{row['ceiling']:.1%})."
        for analysis in analyses
        for row in analysis.run.tables.get("readings", ())
        if row["level"] == "any" and row["factor"] == "all"
    ]
    return Section(
        "readings",
        "Readings",
        "Do outputs show the factors that were asked for?",
        _make_exhibits(analyses, "readings"),
        " ".join(found),
    )


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


def _make_exhibits(analyses: Sequence[RunAnalysis], name: str) -> list[Exhibit]:
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
        figure = draw_stage_rows(drawn, PANELS, "share")
    title, caption = CAPTIONS[name]
    exhibit = Exhibit(f"table_{name}", title, caption, figure, rows)
    return [exhibit] if rows else []
