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
        "linear probes. interaction: the rest, by the number of factors "
        "(pairs, higher) on complete grids. composed: error of embeddings "
        "composed of parts that are fitted to ID, over the error of the ID "
        "mean; nearest_ood: the same of the nearest ID embedding. accuracy: "
        "linear discriminants of the factors, fitted to four fifths of ID. "
        "alignment: of cosines with ideal kernels over OOD. Rows with permuted "
        "classes are the chance level.",
    ),
    "parts": (
        "Parts of factors",
        "Share of the variance, effective rank, and accuracy of the probe.",
    ),
    "pairs": (
        "Angles between parts",
        "cosine: root mean square of cosines between the parts of two factors, "
        "weighted by squared length; angle: the smallest principal angle of "
        "their spans (of 99% of the variance), in degrees; 0 and 90 are "
        "orthogonal.",
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
        " ".join(describe_layers(s) for s in analyses if "layers" in _of(s)),
    )


def make_readings(analyses: Sequence[RunAnalysis]) -> Section:
    """Shows the accuracy of readers on outputs, beside their ceiling."""
    return Section(
        "readings",
        "Readings",
        "Do outputs show the factors that were asked for?",
        _make_exhibits(analyses, "readings"),
        " ".join(_describe_readings(s) for s in analyses if s.run.reader),
    )


def describe_layers(analysis: RunAnalysis) -> str:
    """Describes the latents, or the last layer, as sums of parts."""
    rows = _of(analysis)["layers"]
    names = [row["layer"] for row in rows]
    name = "latents" if "latents" in names else names[-1]
    row, chance = rows[names.index(name) :][:2]
    if row["additive_r2"] is None:
        return f"{analysis.name}: embeddings in {row['layer']} do not differ."
    text = (
        f"{analysis.name}: a sum of parts explains {row['additive_r2']:.1%} of "
        f"the variance in {row['layer']} ({chance['additive_r2']:.1%} with "
        "permuted classes)"
    )
    if row["composed_ood"] is None:
        return f"{text}."
    return (
        f"{text}; held-out embeddings composed of parts have "
        f"{row['composed_ood']:.1%} of the error of the mean (the nearest ID "
        f"embedding {row['nearest_ood']:.1%})."
    )


def _describe_readings(analysis: RunAnalysis) -> str:
    shares = [
        f"{row['subset'].upper()} {row['accuracy']:.1%} (true images "
        f"{row['ceiling']:.1%})"
        for row in _of(analysis)["readings"]
        if row["level"] == "any" and row["factor"] == "all"
    ]
    text = "; ".join(shares)
    return f"{analysis.name}: all factors are read right in {text}."


def _of(analysis: RunAnalysis) -> dict[str, list[Row]]:
    return analysis.run.tables


def _make_exhibits(analyses: Sequence[RunAnalysis], name: str) -> list[Exhibit]:
    rows: list[Row] = [
        {"run": analysis.name, **row}
        for analysis in analyses
        for row in _of(analysis).get(name, ())
    ]
    if not rows:
        return []
    columns = dict.fromkeys(str(key) for row in rows for key in row)
    rows = [{key: row.get(key) for key in columns} for row in rows]
    figure = None
    if name == "layers":
        drawn = [
            row | {"stage": row["layer"], "curve": row["classes"]}
            for row in rows
        ]
        figure = draw_stage_rows(drawn, PANELS, "share")
    return [Exhibit(f"table_{name}", *CAPTIONS[name], figure, rows)]
