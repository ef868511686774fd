"""C6 to C10, version 2: what stages do to x and y, net of the start."""

from __future__ import annotations

import functools

from tfcomp.claims.claim import EACH_FITTED
from tfcomp.claims.claim import Number
from tfcomp.claims.estimation import estimate_trend
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.experiments import factorization
from tfcomp.claims.experiments import volumes
from tfcomp.claims.experiments.decoders import make_cnn
from tfcomp.claims.fresh.composition import DONUTS
from tfcomp.claims.fresh.composition import MLPS
from tfcomp.claims.fresh.composition import measure_fitted
from tfcomp.claims.fresh.composition import plant_all
from tfcomp.claims.fresh_claim import Kind
from tfcomp.claims.fresh_claim import plant
from tfcomp.claims.fresh_claim import revise
from tfcomp.claims.run_numbers import Stages
from tfcomp.claims.run_numbers import average_late
from tfcomp.claims.run_numbers import difference
from tfcomp.claims.run_numbers import list_stages
from tfcomp.claims.run_numbers import minus
from tfcomp.claims.run_numbers import net
from tfcomp.claims.run_numbers import subtract_start
from tfcomp.claims.run_numbers import take_change
from tfcomp.claims.run_numbers import take_largest_drop
from tfcomp.claims.verdict import Part
from tfcomp.claims.verdict import above
from tfcomp.claims.verdict import below

AUTHORS_EPOCHS = 20  # of 63 steps: 1,260 steps, the authors' length
FLAT = [1.0, 0.99, 0.99, 0.99, 0.99]
FALLING = [1.0, 0.99, 0.97, 0.94, 0.91]
STEEP = [1.0, 0.99, 0.89, 0.88, 0.88]


def read_warp(run: Run) -> Stages:
    """How far log-volume lies from that over ID, OOD less ID."""
    within = run.get_stages("log_volume_deviation_id")
    outside = run.get_stages("log_volume_deviation_ood")
    return {stage: minus(v, within.get(stage)) for stage, v in outside.items()}


def make_trend(words: str, stages: object, rule: object) -> Number:
    """Page's test of a number net of the start, over stages."""
    read = list_stages(subtract_start(stages))
    quantity = f"{words} net of the start, rank correlation with the stage"
    return Number(quantity, read, rule, "trend", by=estimate_trend)


DECAY = (
    Number(
        "F at the image less F at stage 0, net of the start",
        net(take_change("factorization")),
        below(-0.02),
        "fall",
    ),
    make_trend("F", "factorization", below(0)),
)
DROP = Number(
    "largest drop of F in one stage, net of the start",
    difference(net(take_largest_drop("factorization"))),
    above(0.02),
)
PROBES = [
    Number(
        f"R² of a linear probe ({words}), last stage less stage 0, net of the "
        "start",
        net(take_change(name)),
        below(-0.01),
        words,
        name == "probe_r2_grid",
    )
    for name, words in (
        ("probe_r2_grid", "whole grid, out of fold"),
        ("probe_r2_ood", "ID to OOD"),
    )
]
WARP = (
    Number(
        "mean of |log V - its median over ID|, OOD less ID, net of the start, "
        "later half of the stages",
        net(average_late(read_warp)),
        above(0.1),
        "warp",
    ),
    make_trend("this number", read_warp, above(0)),
)


def judge_signs(evidence: Evidence) -> list[Part]:
    """C10: when fitted, which decides, and after 1,260 steps."""
    lengths = {
        "": {"gates": [EACH_FITTED], "epochs": lambda n: n != AUTHORS_EPOCHS},
        ", 1,260 steps": {"decides": False, "epochs": AUTHORS_EPOCHS},
    }
    return [
        part
        for words, options in lengths.items()
        for part in volumes.judge_signs(
            evidence, words=words, **{"gates": [], **options}
        )
    ]


def plant_stages(name: str, kind: Kind, measure: str, values: list) -> object:
    """A control of CNNs with numbers by stage, and flat ones at the start."""
    scores = {measure: values, f"start/{measure}": FLAT}
    return plant_all(name, kind, DONUTS, **scores)


def plant_volumes(name: str, kind: Kind, warp: list[float]) -> object:
    """A control of C9 by what is read at each stage, nothing at the start."""
    zero = [0.0] * len(warp)
    names = ("log_volume_deviation_id", "log_volume_deviation_ood")
    starts = {f"start/{name}": zero for name in names}
    scores = {names[0]: zero, names[1]: warp}
    return plant_all(name, kind, DONUTS, **starts, **scores)


def plant_depths(name: str, kind: Kind, *values: list[float]) -> object:
    """A control of C7 by F at depth 2 and at depth 6."""
    setting = make_cnn("ramp")
    return plant(
        name,
        kind,
        *(
            (
                setting.require(depth=depth),
                {"factorization": f, "start/factorization": FLAT},
            )
            for depth, f in zip((2, 6), values, strict=True)
        ),
    )


def plant_signs(name: str, kind: Kind, cnn: float, mlp: float) -> object:
    """A control of C10 by mean log-volume, OOD less ID."""
    measure = "log_volume_difference"
    planted = [
        (setting, {measure: [0.09, *[0.09 + shift] * 4]})
        for settings, shift in ((DONUTS, cnn), (MLPS, mlp))
        for setting in settings.values()
    ]
    return plant(name, kind, *planted)


C6, C7, C8 = factorization.CLAIMS
C9, C10 = volumes.CLAIMS
CLAIMS = (
    revise(
        C6,
        "F falls by more than 0.02 from stage 0 to the image, net of the "
        "start, stage by stage (Page)",
        [
            functools.partial(
                factorization.judge_decay, numbers=DECAY, gates=[EACH_FITTED]
            )
        ],
        "F of equation 7, mean over the grid, less the same of the untrained "
        "network of the same seed.",
        [
            plant_stages("a fall", Kind.POSITIVE, "factorization", FALLING),
            plant_stages("factorized", Kind.NEGATIVE, "factorization", FLAT),
        ],
    ),
    revise(
        C7,
        "largest one-stage drop of F, net of the start, larger at depth 2 "
        "than at depth 6 by more than 0.02; ramp",
        [
            functools.partial(
                factorization.judge_drop, numbers=[DROP], gate=EACH_FITTED
            )
        ],
        "Of the trained network less that of the untrained one, at equal "
        "seeds.",
        [
            plant_depths("one steep drop", Kind.POSITIVE, STEEP, FALLING),
            plant_depths("equal drops", Kind.NEGATIVE, STEEP, STEEP),
        ],
    ),
    revise(
        C8,
        "R² of linear probes falls by more than 0.01, net of the start",
        measure_fitted(DONUTS, *PROBES),
        "Ridge regression to x and y over the whole grid, out of fold. From "
        "ID to OOD, beside it.",
        [
            plant_stages("a fall", Kind.POSITIVE, "probe_r2_grid", FALLING),
            plant_stages(
                "shuffled targets", Kind.NEGATIVE, "probe_r2_grid", [-0.01] * 5
            ),
        ],
    ),
    revise(
        C9,
        "more than 0.1 from the ID median of log V, OOD less ID, net of the "
        "start, growing with the stage (Page)",
        measure_fitted(DONUTS, *WARP),
        "The code's own number is the same at the start, and so subtracted.",
        [
            plant_volumes("a fold", Kind.POSITIVE, [0, 0.2, 0.5, 0.9, 1.4]),
            plant_volumes("a uniform manifold", Kind.NEGATIVE, [0] * 5),
        ],
    ),
    revise(
        C10,
        C10.rule,
        [judge_signs],
        "Fitted networks decide; after 1,260 steps, the authors' length, they "
        "stand beside them, even if they are not fitted.",
        [
            plant_signs("opposite signs", Kind.POSITIVE, -0.5, 0.3),
            plant_signs("equal signs", Kind.NEGATIVE, -0.5, -0.3),
        ],
    ),
)
