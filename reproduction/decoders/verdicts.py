"""Verdicts on decoders: an interval over seeds against a bound."""

import enum
from collections.abc import Sequence

from tfcomp.statistics.seed_statistics import Statistics

# Two seeds have an interval of 12.7 standard errors on either side: formally
# enough, and blind to the third seed that behaves in another way.
MIN_SEEDS = 3


class Verdict(enum.StrEnum):
    """Answer of the evidence to a statement."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


def judge(estimate: Statistics | None, bound: float) -> Verdict:
    """Judges that a number is above a bound, by its 95 % interval."""
    if estimate is None:
        return Verdict.NOT_RUN
    low, high = estimate.low, estimate.high
    if estimate.count < MIN_SEEDS or low is None or high is None:
        return Verdict.UNDECIDED
    if low > bound:
        return Verdict.REPRODUCED
    return Verdict.REFUTED if high <= bound else Verdict.UNDECIDED


def combine(verdicts: Sequence[Verdict]) -> Verdict:
    """Judges a statement that all of its parts must support."""
    found = set(verdicts)
    if found <= {Verdict.NOT_RUN}:
        return Verdict.NOT_RUN
    if Verdict.REFUTED in found:  # a false part makes it false
        return Verdict.REFUTED
    if found == {Verdict.REPRODUCED}:
        return Verdict.REPRODUCED
    return Verdict.UNDECIDED
