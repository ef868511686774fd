"""C9 and C10: how the manifold is stretched, in the region and outside.

The code has a border effect of its own, the same for every seed: a bump that
the edge of the grid cuts has another log-volume. What a network adds to it is
what is left after the code's value is subtracted.
"""

from dataclasses import replace
from statistics import fmean
from typing import Any

from tfcomp.statistics.limits import SHARE
from tfcomp.studies.claims import claim_pictures, run_numbers
from tfcomp.studies.claims.claim import (
    FITTED,
    Number,
    make_trend,
    measure,
    measure_each,
)
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.experiments import decoders
from tfcomp.studies.claims.experiments.decoders import MAIN_CODES
from tfcomp.studies.claims.run_numbers import Stages, minus
from tfcomp.studies.claims.selection import Group
from tfcomp.studies.claims.verdict import (
    Part,
    Rule,
    Verdict,
    above,
    below,
    differs,
)

# Log-volumes that differ by less are the same for our purpose: 10 % of the
# volume.
VOLUME_MARGIN = 0.1
# 1,260 steps, the authors' length.
AUTHORS_LENGTH = {"epochs": 20, "steps_per_epoch": 63}


def is_full_length(epochs: int) -> bool:
    """Whether networks may be fitted: not after the authors' length."""
    return epochs != AUTHORS_LENGTH["epochs"]


def compare_sides(run: Run, name: str) -> Stages:
    """A measure of every stage over OOD points, less that over ID points."""
    within = run.get_stages(f"{name}_id")
    outside = run.get_stages(f"{name}_ood")
    return {stage: minus(v, within.get(stage)) for stage, v in outside.items()}


def read_spread(run: Run) -> Stages:
    """Standard deviation, OOD less ID, less the same of the code."""
    return run_numbers.subtract_code(compare_sides(run, "log_volume_sd"))


def read_deviation(run: Run) -> Stages:
    """How far log-volume lies from that over ID, OOD less ID: medians."""
    return compare_sides(run, "log_volume_median_deviation")


def read_shift(run: Run) -> Stages:
    """Median over OOD less that over ID, less the same of the code."""
    return run_numbers.subtract_code(compare_sides(run, "log_volume_median"))


LATE_DEVIATION = run_numbers.net(
    run_numbers.reduce_stages(lambda v: fmean(v[len(v) // 2 :]), read_deviation)
)
WARP = (
    Number(
        "median of |log V - its median over ID|, OOD less ID, net of the "
        "start, later half of the stages",
        LATE_DEVIATION,
        above(0.1),
        "warp",
    ),
    make_trend("this number", read_deviation, above(0)),
    Number(
        "share of OOD points at the floor, largest of the stages",
        run_numbers.reduce_stages(max, "floor_fraction_ood"),
        below(0.1),
        "at the floor",
        decides=False,
        limits=SHARE,
    ),
)


def measure_shift(label: str, group: Group, rule: Rule, **options: Any) -> Part:
    """Whether networks expand (> 0) or compress the region."""
    words = "median log-volume, OOD less ID, less that of the code, mean over"
    read = run_numbers.average(read_shift)
    number = Number(f"{words} stages", read, rule)
    (part,) = measure(label, [group], [number], **options)
    return part


def judge_signs(evidence: Evidence) -> list[Part]:
    """C10: the MLP beyond a margin of the other sign than the CNN's.

    When fitted, which decides, and after 1,260 steps.
    """
    parts = []
    for words, gates, must in (
        ("", [FITTED], {"epochs": is_full_length}),
        (", 1,260 steps", [], AUTHORS_LENGTH),
    ):
        for code in MAIN_CODES:
            cnn = measure_shift(
                f"CNN, {code}{words}",
                decoders.make_cnn(code).require(**must).find(evidence),
                differs(VOLUME_MARGIN),
                gates=gates,
            )
            is_negative = cnn.estimate is not None and cnn.estimate.mean < 0
            is_known = cnn.verdict is Verdict.REPRODUCED
            mlp = measure_shift(
                f"MLP, {code}{words}",
                decoders.make_mlp(code).require(**must).find(evidence),
                above(VOLUME_MARGIN) if is_negative else below(-VOLUME_MARGIN),
                gates=gates if is_known else [],
                problem="" if is_known else "the sign for the CNN is not known",
            )
            # The sign for the CNN alone says nothing of the claim.
            parts += [
                replace(part, of=f"{code}{words}", decides=not words)
                for part in (cnn, mlp)
            ]
    return parts


def draw_warp(evidence: Evidence) -> claim_pictures.Figures:
    """Spread of log-volume per stage: ID and OOD, and what is judged."""
    groups = decoders.find_donuts(evidence)
    return claim_pictures.draw_spread(groups) | claim_pictures.draw_stages(
        {"": (groups, read_spread)},
        "spread, OOD - ID - code",
        "Standard deviation of log-volume over OOD points less that over ID "
        "points, less the same of the code, mean over seeds, with 95 % "
        "intervals. Its size is judged, seed by seed.",
    )


def draw_signs(evidence: Evidence) -> claim_pictures.Figures:
    """Difference of mean log-volumes per stage."""
    cnns = decoders.find_donuts(evidence)
    mlps = {
        f"{code} code": decoders.make_mlp(code).find(evidence)
        for code in MAIN_CODES
    }
    return claim_pictures.draw_stages(
        {"CNN": (cnns, read_shift), "MLP": (mlps, read_shift)},
        "log-volume, OOD - ID - code",
        "Mean log-volume over OOD points less that over ID points, less the "
        "same of the code, mean over seeds, with 95 % intervals. Below 0: the "
        "network compresses the region.",
    )


TESTS = {
    "C9": [measure_each(decoders.DONUTS, *WARP)],
    "C10": [judge_signs],
}
PICTURES = {"C9": draw_warp, "C10": draw_signs}
