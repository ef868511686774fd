"""Low-rank embeddings: matrices and spectra (figures 3b, 3c, 6)."""

from __future__ import annotations

from collections.abc import Sequence

from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.page import Section

CAPTIONS = {
    "embedding": "The matrix that each value of the factor (panel titles, "
    "px) is rendered to, one signed colour scale for all.",
    "spectrum": "Singular values of every matrix, divided by the largest "
    "one; thick: median over values.",
}


def make_embeddings(studies: Sequence[Study]) -> Section:
    """What forced rendering has learned to render."""
    exhibits = []
    for study in studies:
        for name, embedding in study.embeddings.items():
            figures = picture_embedding(study.dataset.space[name], embedding)
            rows = {
                "embedding": [{"factor": name, **embedding.summary}],
                "spectrum": [
                    {"value": value, "mode": mode, "singular_value": float(s)}
                    for value, spectrum in enumerate(embedding.spectrum)
                    for mode, s in enumerate(spectrum)
                ],
            }
            exhibits += [
                Exhibit(
                    f"{study.name}_{kind}_{name}",
                    f"{kind.capitalize()} of {name}: {study.name}",
                    CAPTIONS[kind],
                    figure,
                    rows[kind],
                )
                for kind, figure in figures.items()
            ]
    return Section(
        "embeddings",
        "Embeddings in pixel space",
        "The low-rank network renders each factor value as a matrix of its "
        "own before it combines them.",
        exhibits,
    )
