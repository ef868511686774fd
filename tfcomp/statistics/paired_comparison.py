"""Differences between settings at equal seeds.

Runs of one seed share their data order and much of their chance, so that the
difference within a seed has less spread than the scores have.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from tfcomp.statistics.seed_statistics import Setting
from tfcomp.statistics.seed_statistics import compute_interval
from tfcomp.statistics.seed_statistics import get_score

# Scores of which "half as large" says more than "0.01 less".
RATIO_ENDINGS = ("mse", "_error")


def compare_settings(
    settings: Sequence[Setting], scores: Sequence[str], method: str = "student"
) -> list[dict[str, Any]]:
    """Every pair of settings, for every score.

    Args:
        settings: The settings; they differ in their flags.
        scores: Scores by their path (see `seed_statistics.get_score`).
        method: Of the 95 % intervals (`seed_statistics.compute_interval`).

    Returns:
        Rows with the flags of both settings (`<flag>_a`, `<flag>_b`), the
        score, the mean `difference` b - a over the seeds that both have, its
        sd, low, high and n; `p` of the paired t-test and `p_holm`, adjusted
        for all pairs of that score; for errors `ratio` b / a (geometric mean)
        with `ratio_low` and `ratio_high`. None where there is no such number.
    """
    rows = []
    for score in scores:
        family = [
            _name_pair(a, b) | {"score": score} | _compare(a, b, score, method)
            for a, b in itertools.combinations(settings, 2)
        ]
        adjusted = adjust_by_holm([row["p"] for row in family])
        for row, p_holm in zip(family, adjusted, strict=True):
            row["p_holm"] = p_holm
        rows += [_order(row) for row in family]
    return rows


def adjust_by_holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment: controls the chance of any false find.

    Args:
        p_values: Of one family of tests; None where there was no test.
    """
    known = [i for i, p in enumerate(p_values) if p is not None]
    known.sort(key=lambda i: p_values[i])
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(known):
        # Never below the one before, so that the order stays.
        largest = max(largest, (len(known) - rank) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return adjusted


def match_seeds(
    a: Setting, b: Setting, score: str
) -> tuple[np.ndarray, np.ndarray]:
    """The scores of both settings at the seeds that both have, [n] each."""
    first, second = (
        {
            seed: value
            for seed, metrics in zip(s.seeds, s.metrics, strict=True)
            if (value := get_score(metrics, score)) is not None
        }
        for s in (a, b)
    )
    common = sorted(first.keys() & second.keys())
    return (
        np.array([first[seed] for seed in common], float),
        np.array([second[seed] for seed in common], float),
    )


def _name_pair(a: Setting, b: Setting) -> dict[str, Any]:
    names = {f"{name}_a": value for name, value in a.flags.items()}
    return names | {f"{name}_b": value for name, value in b.flags.items()}


def _compare(
    a: Setting, b: Setting, score: str, method: str
) -> dict[str, float | None]:
    first, second = match_seeds(a, b, score)
    numbers = _summarize(second - first, method)
    numbers["p"] = _test(second - first)
    ratios = dict.fromkeys(("ratio", "ratio_low", "ratio_high"))
    positive = len(first) and min(first.min(), second.min()) > 0
    if score.endswith(RATIO_ENDINGS) and positive:
        logs = _summarize(np.log(second) - np.log(first), method)
        values = (logs[name] for name in ("difference", "low", "high"))
        for name, value in zip(ratios, values, strict=True):
            ratios[name] = None if value is None else float(np.exp(value))
    return numbers | ratios


def _summarize(differences: np.ndarray, method: str) -> dict[str, Any]:
    count = len(differences)
    low, high = compute_interval(differences, method) or (None, None)
    return {
        "difference": float(differences.mean()) if count else None,
        "sd": float(differences.std(ddof=1)) if count > 1 else None,
        "low": low,
        "high": high,
        "n": count,
    }


def _test(differences: np.ndarray) -> float | None:
    """Two-sided p of the t-test; None for less than two differences.

    Where all are the same it is the limit for a vanishing spread: 0, or 1 if
    there is no difference.
    """
    if len(differences) < 2:
        return None
    if np.ptp(differences) == 0:
        return float(differences[0] == 0)
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def _order(row: dict[str, Any]) -> dict[str, Any]:
    """The columns with `p_holm` beside `p`, and the ratios last."""
    last = ("ratio", "ratio_low", "ratio_high")
    first = {name: value for name, value in row.items() if name not in last}
    return first | {name: row[name] for name in last}
