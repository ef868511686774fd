"""The smallest number that reaches a target, found by bisection.

Each test of a count is a training: it takes long, is noisy, and succeeds more
often for larger counts. The search depends on the answers alone, so it can be
repeated from recorded ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Reaches = Callable[[int], bool]


@dataclass(frozen=True)
class Limits:
    """The range and the precision of a search."""

    first: int  # tried (after 0, if that is allowed); decides the cost alone
    maximum: int
    minimum: int = 1  # the smallest count that makes sense, 0 or 1
    tolerance: float = 1.2  # of the count found to the largest below that fails


@dataclass(frozen=True)
class Found:
    """The smallest count tried that reaches; else the maximum, too small."""

    count: int
    reached: bool
    answers: dict[int, bool]  # by count, in the order in which they were tried


def find_threshold(reaches: Reaches, limits: Limits) -> Found:
    """Brackets the threshold by doubling or halving, then bisects its log.

    For any answers, the returned count reaches the target, and a count below it
    by at most the tolerance (or by 1) does not, unless it is the minimum. No
    count is tested twice.
    """
    answers: dict[int, bool] = {}

    def ask(count: int) -> bool:
        if count not in answers:
            answers[count] = bool(reaches(count))
        return answers[count]

    if limits.minimum == 0 and ask(0):
        return Found(0, True, answers)
    low = high = limits.first
    if ask(high):
        low = high // 2
        while low and ask(low):  # 0 fails, or makes no sense
            low, high = low // 2, low
    else:
        while not ask(high):
            if high >= limits.maximum:
                return Found(limits.maximum, False, answers)
            low, high = high, min(2 * high, limits.maximum)
    return Found(_bisect(ask, low, high, limits.tolerance), True, answers)


def _bisect(ask: Reaches, low: int, high: int, tolerance: float) -> int:
    while high - low > 1 and high > tolerance * low:
        middle = round(math.sqrt(max(low, 1) * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if ask(middle) else (middle, high)
    return high


def dither(count: float, *seed: int) -> int:
    """Multiplies a count by up to 2, uniformly in log scale, by the seed.

    The rounding of thresholds to a geometric grid then averages out over
    searches.
    """
    shift = np.random.default_rng(seed).uniform()
    return round(count * 2.0**shift)
