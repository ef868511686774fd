"""C16, C19 and C20, version 2: data needed in two settings, and rotation."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfcomp.claims.claim import EACH_FITTED
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.experiments import data_needed
from tfcomp.claims.experiments import rotated_digits
from tfcomp.claims.fresh_claim import FIRST_SEED
from tfcomp.claims.fresh_claim import Control
from tfcomp.claims.fresh_claim import Kind
from tfcomp.claims.fresh_claim import plant
from tfcomp.claims.fresh_claim import revise
from tfcomp.claims.threshold_studies import ThresholdStudy
from tfcomp.claims.verdict import Part

MIN_SIZES, MIN_RATIO = 4, 1.8
SIZES = (16, 20, 24, 28, 32)
# The paper leaves open with which network it searched.
SETTINGS = {
    "small CNN": {"polarity": "bright", "depth": 2, "learning_rate": 2e-3},
    "the donut's CNN": {"polarity": "dark", "depth": 4, "learning_rate": 1e-3},
}


def judge_slopes(evidence: Evidence) -> list[Part]:
    """C16: both settings, each with its name."""
    parts = []
    for name, flags in SETTINGS.items():
        studies = [
            study
            for study in evidence.studies
            if flags.items() <= study.flags.items()
        ]
        found = data_needed.judge_slopes(Evidence(studies=tuple(studies)))
        gap = find_gap(studies)
        parts += [
            replace(
                part,
                label=f"{name}: {part.label}",
                problem=part.problem or gap,
            )
            for part in found
        ]
    return parts


def find_gap(studies: list[ThresholdStudy]) -> str:
    """Why the sizes of a setting are too few; empty if they are not."""
    sizes = {float(n) for s in studies for n in s.thresholds["grid_size"]}
    if studies and len(sizes) < MIN_SIZES:
        return f"{len(sizes)} of at least {MIN_SIZES} sizes"
    if studies and max(sizes) < MIN_RATIO * min(sizes):
        return f"the largest size must be {MIN_RATIO} times the smallest"
    return ""


def plant_slopes(name: str, kind: Kind, **exponents: float) -> Control:
    """A control of C16 by the exponents, found to within a fifth."""
    return Control(name, kind, functools.partial(_plant_studies, exponents))


def _plant_studies(exponents: Mapping[str, float]) -> Evidence:
    import pandas

    shared = {"region": "corner", "criterion": data_needed.CRITERION}
    searches = [
        {"kind": kind, "grid_size": size, "seed": FIRST_SEED + i, **shared}
        for kind in exponents
        for size in SIZES
        for i in range(3)
    ]
    slopes: list[dict[str, Any]] = [
        {"kind": k, "slope": s, "low": s - 0.2, "high": s + 0.2, **shared}
        for k, s in exponents.items()
    ]
    rest = {"quantity": data_needed.TOTAL, "not_reached": 0.0, "note": None}
    tables = pandas.DataFrame(searches), pandas.DataFrame(slopes).assign(**rest)
    return Evidence(
        studies=tuple(
            ThresholdStudy(Path(f"/planted/{name}"), *tables, dict(flags))
            for name, flags in SETTINGS.items()
        )
    )


def plant_rotation(name: str, kind: Kind, **scores: Any) -> Control:
    """A control of C19 or C20."""
    return plant(name, kind, (rotated_digits.ROTATED, scores))


(C16,) = data_needed.CLAIMS
C19, C20 = rotated_digits.CLAIMS
SLOPES = list(data_needed.SLOPES)
CLAIMS = (
    revise(
        C16,
        "slope 2.5 to 3.5 for bumps, 0.5 to 1.5 with stripes, in each setting",
        [judge_slopes],
        "As in version 1, from at least four sizes, the largest at least 1.8 "
        "times the smallest, in two settings: the shipped small CNN, and the "
        "donut's (dark, learning rate 1e-3, depth 4).",
        [
            plant_slopes(name, kind, **dict(zip(SLOPES, values, strict=True)))
            for name, kind, values in (
                ("exponents 3 and 1", Kind.POSITIVE, (3, 1)),
                ("exponents 2 and 2", Kind.NEGATIVE, (2, 2)),
                ("exponents 1 and 3", Kind.NEGATIVE, (1, 3)),
            )
        ],
    ),
    revise(
        C19,
        C19.rule,
        [rotated_digits.measure_gap(rotated_digits.INTERPOLATION, EACH_FITTED)],
        "",
        [
            plant_rotation("interpolation", Kind.POSITIVE, edge_r2=0.98),
            plant_rotation("true rotation", Kind.NEGATIVE, edge_r2=0.6),
        ],
    ),
    revise(
        C20,
        C20.rule,
        [rotated_digits.measure_gap(rotated_digits.SMOOTHNESS, EACH_FITTED)],
        "",
        [
            plant_rotation(
                name, kind, gap_max_speed=jumps, gap_max_turning=jumps
            )
            for name, kind, jumps in (
                ("a smooth curve", Kind.POSITIVE, [1.0] * 5),
                ("a jump", Kind.NEGATIVE, [1.0, 1.0, 1.0, 4.0, 4.0]),
            )
        ],
    ),
)
