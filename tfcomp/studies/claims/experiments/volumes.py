"""C9 and C10: how the manifold is stretched, in the region and outside.

The code has a border effect of its own, the same for every seed: a bump that
the edge of the grid cuts has another log-volume. It is subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from tfcomp.statistics.estimates import estimate_trend
from tfcomp.statistics.limits import SHARE
from tfcomp.statistics.verdicts import Rule, Verdict, above, below, differs
from tfcomp.studies.claims.claim import (
    CODE,
    FITTED,
    Case,
    Check,
    Declaration,
    Gate,
    Number,
    make_trend,
)
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES
from tfcomp.studies.claims.parts import Part, measure
from tfcomp.tables.flatten import END
from tfcomp.tables.groups import Group

if TYPE_CHECKING:
    from pandas import DataFrame

# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1
# 1,260 steps, the authors' length.
AUTHORS_LENGTH = {"epochs": 20, "steps_per_epoch": 63}


def is_full_length(epochs: int) -> bool:
    """Returns True unless trained for the authors' length, too short to fit."""
    return epochs != AUTHORS_LENGTH["epochs"]


def compare_sides(group: Group, name: str, when: str) -> DataFrame:
    """Returns a measure of stages over OOD points, less that over ID."""
    outside = group.get_stages(f"{name}_ood", when)
    return outside - group.get_stages(f"{name}_id", when)


def subtract_code(stages: DataFrame) -> DataFrame:
    """Subtracts the number of the code, which is 0 then."""
    return stages.sub(stages[CODE], axis=0) if CODE in stages else stages


def read_deviation(group: Group, when: str = END) -> DataFrame:
    """Returns medians of |log-volume - its median over ID|, OOD less ID."""
    return compare_sides(group, "log_volume_median_deviation", when)


def read_shift(group: Group, when: str = END) -> DataFrame:
    """Returns medians, OOD less ID, less the same of the code."""
    return subtract_code(compare_sides(group, "log_volume_median", when))


def average_late(stages: list[float]) -> float:
    """Returns the mean over the later half of the stages."""
    return fmean(stages[len(stages) // 2 :])


WARP = (
    Number(
        "median of |log V - its median over ID|, OOD less ID, net of the "
        "start, later half of the stages",
        read_deviation,
        above(0.1),
        "warp",
        over=average_late,
        net=True,
    ),
    make_trend("this deviation", read_deviation, above(0)),
    Number(
        "share of OOD points at the floor, largest of the stages",
        "floor_fraction_ood",
        below(0.1),
        "at the floor",
        over=max,
        decides=False,
        limits=SHARE,
    ),
)


OF_TRAINED = (
    "median of |log V - its median over ID|, OOD less ID, later half of the "
    "stages"
)
# The held-out region by itself: a difference also grows as ID gets more even.
OOD_WARP = Number(
    "median of |log V - its median over ID| of OOD points, net of the start, "
    "later half of the stages",
    "log_volume_median_deviation_ood",
    above(0.1),
    "OOD alone",
    over=average_late,
    net=True,
)


def measure_shift(case: Case, rule: Rule, gates: Sequence[Gate]) -> Part:
    """Judges how far networks expand (> 0) or compress the region."""
    words = "median log-volume, OOD less ID, less that of the code, mean over"
    number = Number(f"{words} stages", read_shift, rule, over=fmean)
    (part,) = measure(case, [number], gates)
    return part


def judge_signs(evidence: Evidence) -> list[Part]:
    """Judges C10: the MLP beyond a margin of the other sign than the CNN's.

    When fitted, which decides, and after 1,260 steps.
    """
    parts = []
    for words, gates, must in (
        ("", [FITTED], {"epochs": is_full_length}),
        (", 1,260 steps", [], AUTHORS_LENGTH),
    ):
        for code in MAIN_CODES:
            cnns = decoders.make_cnn(code).require(**must)
            case = Case(f"CNN, {code}{words}", [cnns.find(evidence.groups)])
            cnn = measure_shift(case, differs(VOLUME_MARGIN), gates)
            is_negative = cnn.estimate is not None and cnn.estimate.mean < 0
            is_known = cnn.verdict is Verdict.REPRODUCED
            mlps = decoders.make_mlp(code).require(**must)
            mlp = measure_shift(
                Case(
                    f"MLP, {code}{words}",
                    [mlps.find(evidence.groups)],
                    "" if is_known else "the sign for the CNN is not known",
                ),
                above(VOLUME_MARGIN) if is_negative else below(-VOLUME_MARGIN),
                gates if is_known else [],
            )
            # The sign for the CNN alone says nothing of the claim.
            parts += [
                replace(part, of=f"{code}{words}", decides=not words)
                for part in (cnn, mlp)
            ]
    return parts


# As the paper states it: the trained networks.

# As the paper states it: the trained networks.
TRAINED = (
    replace(WARP[0], quantity=OF_TRAINED, rule=above(0), net=False),
    Number(
        "this deviation, rank correlation with the stage",
        read_deviation,
        above(0),
        "trend",
        over=list,
        by=estimate_trend,
    ),
)
CLAIMS = {
    "C9": Declaration(
        [Check(decoders.DONUTS, [*WARP, OOD_WARP])],
        [Check(decoders.DONUTS, TRAINED)],
    ),
    "C10": Declaration([judge_signs]),
}
