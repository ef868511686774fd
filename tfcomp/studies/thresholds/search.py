"""The smallest number that reaches a target, found by bisection.

The search knows nothing of what it counts: it asks `reaches(count)`, which
is expensive (a training), noisy, and more often true for larger counts. It is
a function of the answers alone, so that a search that was killed is repeated
from its recorded answers without asking anything twice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Reaches = Callable[[int], bool]


@dataclass(frozen=True)
class Limits:
    """Where to search and how finely.

    Attributes:
        first: The first count that is tried (after 0, if that is allowed);
            it decides the cost of a search and not its outcome.
        maximum: The largest count that is tried.
        minimum: The smallest count that makes sense, 0 or 1.
        tolerance: The largest ratio of the count that is found to the
            largest smaller one that failed.
    """

    first: int
    maximum: int
    minimum: int = 1
    tolerance: float = 1.2


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        count: The smallest count tried that reaches; where none does, the
            maximum, which is then a lower bound.
        reached: Whether `count` reaches.
        answers: Every count tried and whether it reached, in order.
    """

    count: int
    reached: bool
    answers: dict[int, bool] = field(default_factory=dict)


def find_threshold(reaches: Reaches, limits: Limits) -> Found:
    """Brackets the threshold by doubling or halving, then bisects its log.

    Whatever the answers are, also if they are not monotone, the count found
    reaches, and a count below it by at most the tolerance (or by 1) does
    not, unless it is the minimum. A response that falls and rises again has
    several such counts, of which one is found.

    Args:
        reaches: Whether a count reaches the target; asked at most once for
            each count.
    """
    answers: dict[int, bool] = {}

    def ask(count: int) -> bool:
        if count not in answers:
            answers[count] = bool(reaches(count))
        return answers[count]

    if limits.minimum == 0 and ask(0):
        return Found(0, True, answers)
    low, high = _bracket(ask, limits)
    if high is None:
        return Found(limits.maximum, False, answers)
    return Found(_bisect(ask, low, high, limits.tolerance), True, answers)


def dither(count: float, *seed: int) -> int:
    """A count up to twice as large, drawn uniformly in log scale.

    Thresholds are rounded up to a geometric grid. Where every search starts
    from a place of its own, the rounding averages out instead of shifting
    all searches of one size alike. The draw depends on the seed alone.
    """
    shift = np.random.default_rng(seed).uniform()
    return round(count * 2.0**shift)


def _bracket(ask: Reaches, limits: Limits) -> tuple[int, int | None]:
    """Neighbours on a geometric grid: one fails, the next reaches."""
    count = limits.first
    if ask(count):
        while count > 1:
            lower = count // 2
            if not ask(lower):
                return lower, count
            count = lower
        return 0, 1  # with 0 known to fail, or out of the question
    while count < limits.maximum:
        higher = min(2 * count, limits.maximum)
        if ask(higher):
            return count, higher
        count = higher
    return count, None


def _bisect(ask: Reaches, low: int, high: int, tolerance: float) -> int:
    while high - low > 1 and high > tolerance * low:
        middle = round(math.sqrt(max(low, 1) * high))
        middle = min(max(middle, low + 1), high - 1)
        if ask(middle):
            high = middle
        else:
            low = middle
    return high
