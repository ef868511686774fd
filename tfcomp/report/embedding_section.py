"""Embeddings: matrices and spectra (figures 3b, 3c, 6), or profiles."""

from collections.abc import Sequence

import numpy as np

from tfcomp.evaluation.pictures import picture_embedding
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.report.findings import describe_ranks
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import show_run

CAPTIONS = {
    "embedding": "The matrix in pixel space that the network renders for each "
    "value of the factor. The title of a panel is the value, and all "
    "matrices share one color scale with 0 in its middle.",
    "profiles": "What hard rendering draws for each value, a row of cells for "
    "each, along the axes of the image. One axis should be in use.",
    "spectrum": "Singular values of every matrix, divided by the largest one. "
    "The thick line is the median over the values of the factor.",
}


def make_embeddings(studies: Sequence[Study]) -> Section:
    """Shows what forced rendering has learned to render."""
    found = [(s, factor) for s in studies for factor in s.embeddings]
    ranks = [
        {"run": s.name, "factor": factor, **s.embeddings[factor].summary}
        for s, factor in found
    ]
    return Section(
        "embeddings",
        "Embeddings in pixel space",
        "Forced rendering draws each factor value as a matrix of its own "
        "before it combines them.",
        [item for pair in found for item in show_embedding(*pair)],
        describe_ranks(ranks),
    )


def show_embedding(study: Study, factor: str) -> list[Exhibit]:
    """Shows the matrices of one factor and what they are made of."""
    embedding = study.embeddings[factor]
    figures = picture_embedding(study.dataset.space[factor], embedding)
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
        show_run(
            study,
            f"{kind}_{factor}",
            f"{kind.capitalize()} of {factor}",
            CAPTIONS[kind],
            figure,
            rows[kind],
        )
        for kind, figure in figures.items()
    ]
