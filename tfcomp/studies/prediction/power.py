"""How strong must a predictor be for the rules to see it?

Predictors that correlate with the outcome as asked, and with nothing else, are
planted among the real networks and go through the rules of `judgement`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from tfcomp.studies.prediction.design import HALVES
from tfcomp.studies.prediction.evidence import ID_ERROR, Evidence
from tfcomp.studies.prediction.judgement import judge

STRENGTHS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
DRAWS = 20
TIME = "0.1"
PLANTED, BASELINE = ("planted", TIME), (ID_ERROR, TIME)


def measure_power(
    halves: Mapping[str, Evidence],
    num_proposed: int,
    strengths: Sequence[float] = STRENGTHS,
) -> list[dict[str, Any]]:
    """How often a planted predictor of each strength passes on both halves.

    Args:
        num_proposed: How many measures share the level of the second half.
    """
    rng = np.random.default_rng(0)
    rows = []
    for strength in strengths:
        tries = range(DRAWS)
        drawn = [_try_once(halves, num_proposed, strength, rng) for _ in tries]
        correlation, found = np.mean(drawn, axis=0)
        rows.append({"spearman": correlation, "draws": DRAWS, "found": found})
    return rows


def find_threshold(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The correlation that is seen in 80 % of draws, between two strengths.

    None if no strength that was tried is seen so often.
    """
    found = np.maximum.accumulate([row["found"] for row in rows])
    if found[-1] < 0.8:
        return None
    return float(np.interp(0.8, found, [row["spearman"] for row in rows]))


def _try_once(
    halves: Mapping[str, Evidence],
    num_proposed: int,
    strength: float,
    rng: np.random.Generator,
) -> tuple[float, bool]:
    """Spearman of a planted predictor, and whether both halves see it."""
    passes, correlations = [], []
    for half in HALVES:
        evidence = _plant(halves[half], strength, rng)
        planted = evidence.measures[PLANTED]
        outcome = evidence.networks.outcome
        correlations.append(stats.spearmanr(planted, outcome).statistic)
        # The level of the second half is shared among what was proposed.
        shared = [PLANTED] * num_proposed if half == HALVES[1] else ()
        row = next(judge(evidence, [PLANTED], {PLANTED: 1.0}, shared))
        passes.append(row["passes"])
    return float(np.mean(correlations)), all(passes)


def _plant(
    evidence: Evidence, strength: float, rng: np.random.Generator
) -> Evidence:
    noise = rng.standard_normal(len(evidence.networks.outcome))
    # Normal variables with this Spearman correlation have that of Pearson.
    linear = 2 * np.sin(np.pi / 6 * strength)
    ranks = stats.rankdata(evidence.networks.outcome)
    ranks = stats.norm.ppf((ranks - 0.5) / len(ranks))  # normal scores
    planted = linear * ranks + np.sqrt(1 - linear**2) * noise
    baseline = {k: v for k, v in evidence.measures.items() if k == BASELINE}
    return dataclasses.replace(
        evidence, measures={PLANTED: planted, **baseline}
    )
