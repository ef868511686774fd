"""Do factors interact in a stage, and which stages are alike?"""

import itertools
from collections.abc import Sequence

import numpy as np

from tfcomp.analysis.similarity import summarize_similarity
from tfcomp.evaluation.study import Study
from tfcomp.figures.exhibits import Exhibit
from tfcomp.figures.map_plots import draw_gram_matrices
from tfcomp.report.findings import describe_course
from tfcomp.report.layer_section import make_charts
from tfcomp.report.page import Section
from tfcomp.report.run_exhibits import draw_stage_rows, find_rows, show_run

SHARE = "interaction_share"
# In the tables, beside what is drawn.
SHOWN = ("contrast", "gaussian_curvature")
SIMILARITIES = {"debiased CKA": "cka", "Procrustes": "procrustes", "RSA": "rsa"}
CAPTION = (
    "At a sample of the grid, whatever the rotation and the scale: linear CKA "
    "without its bias, orthogonal Procrustes distance d (0 for equal shapes, "
    "at most √2; in maps 1 - d²/2), and rank correlation of the distances "
    "between points (RSA). In the table, _null is the mean of the number after "
    "the points of one side were permuted, and _p the share of permutations "
    "that are as similar (0.05 at the least)."
)


def make_interactions(studies: Sequence[Study]) -> Section:
    """Shows how far a stage is from a sum over factors, and from the others."""
    several = [s for s in studies if len(s.dataset.space) > 1]
    exhibits = make_charts(several, "interactions", SHOWN)
    exhibits += [make_similarities(study) for study in studies]
    groups: dict[bytes, list[Study]] = {}
    for study in studies:
        groups.setdefault(study.compared_points.tobytes(), []).append(study)
    exhibits += [
        make_comparison(group, f"similarity_{number}")
        for number, group in enumerate(groups.values())
        if len(group) > 1
    ]
    return Section(
        "interactions",
        "Interactions and similarity",
        "Does one factor change what another one does? A decoder that adds up "
        "parts, one for each factor, has no interactions. And are two stages, "
        "or the same stage of two runs, alike up to a rotation?",
        exhibits,
        describe_course(
            find_rows(exhibits, SHARE),
            SHARE,
            "the share of interactions in the variance",
        ),
    )


def make_similarities(study: Study) -> Exhibit:
    """Draws how alike any two stages of a run are."""
    rows, count = study.similarities, len(study.stages)
    maps = np.tile(np.eye(count), (len(SIMILARITIES), 1, 1))
    for found in rows:
        i, j = (study.stages.index(found[key]) for key in ("stage", "other"))
        maps[:, i, j] = [found[name] for name in SIMILARITIES.values()]
        maps[1, i, j] = 1 - maps[1, i, j] ** 2 / 2
        maps[:, j, i] = maps[:, i, j]
    panels = dict(zip(SIMILARITIES, maps, strict=True))
    figure = draw_gram_matrices(panels, count, names=study.stages)
    return show_run(
        study, "similarity", "Similarity of stages", CAPTION, figure, rows
    )


def make_comparison(studies: Sequence[Study], name: str) -> Exhibit:
    """Draws how alike the same stage of any two runs is, as of two seeds."""
    rows = [
        {
            "run": f"{first.name} and {second.name}",
            "stage": stage,
            **summarize_similarity(first.shapes[stage], second.shapes[stage]),
        }
        for first, second in itertools.combinations(studies, 2)
        for stage in first.stages
        if stage in second.stages
    ]
    figure = draw_stage_rows(rows, SIMILARITIES, "similarity, distance")
    return Exhibit(name, "The same stage of two runs", CAPTION, figure, rows)
