"""Numbers of one run, or of two at one seed, that claims are about.

Each function returns a function that reads a number from a run. Numbers
that exist at every stage are read as a mapping from stages, in the order of
the data flow, and reduced to one. The stages after the code are those that
training shapes; the code itself is the same for every seed and region. A
number is None if anything that it is computed from is missing.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tfcomp.claims.estimation import Read
from tfcomp.claims.evidence import Run

CODE = "code"
MIN_PLACES = 3

# Numbers by stage; how to get them from a run; the same, or their name.
Stages = dict[str, float | None]
ReadStages = Callable[[Run], Stages]
PerStage = str | ReadStages


def subtract(first: str, second: str) -> Read:
    """Difference of two scores of one run."""
    return lambda run: _apply(operator.sub, run.get(first), run.get(second))


def difference(read: Read) -> Read:
    """Difference of a number between two runs."""
    return lambda first, second: _apply(operator.sub, read(first), read(second))


def log_ratio(name: str) -> Read:
    """Decimal logarithm of a score of one run over that of another."""

    def compute(first: Run, second: Run) -> float | None:
        a, b = first.get(name), second.get(name)
        if a is None or b is None or a <= 0 or b <= 0:
            return None
        return math.log10(a / b)

    return compute


def read_stages(stages: PerStage) -> ReadStages:
    """A number of every stage: by its name, or what is computed of some."""
    if callable(stages):
        return stages
    return operator.methodcaller("get_stages", stages)


def subtract_stages(first: str, second: str) -> ReadStages:
    """Difference of two numbers at every stage."""

    def compute(run: Run) -> Stages:
        others = run.get_stages(second)
        return {
            stage: _apply(operator.sub, value, others.get(stage))
            for stage, value in run.get_stages(first).items()
        }

    return compute


def subtract_code(stages: PerStage) -> ReadStages:
    """A number of every stage less that of the code, which is 0 then."""

    def compute(run: Run) -> Stages:
        values = read_stages(stages)(run)
        code = values.get(CODE)
        return {s: _apply(operator.sub, v, code) for s, v in values.items()}

    return compute


def take_size(stages: PerStage) -> ReadStages:
    """A number of every stage without its sign."""
    read = read_stages(stages)
    return lambda run: {s: _apply(abs, v) for s, v in read(run).items()}


def average(stages: PerStage) -> Read:
    """Mean over the stages after the code."""
    return _reduce(stages, statistics.fmean)


def take_largest(stages: PerStage) -> Read:
    """The largest of all stages after the code."""
    return _reduce(stages, max)


def take_largest_drop(stages: PerStage) -> Read:
    """The most that a number falls from one stage to the next."""

    def compute(run: Run) -> float | None:
        values = list(read_stages(stages)(run).values())
        if len(values) < 2 or None in values:
            return None
        return max(before - after for before, after in pairwise(values))

    return compute


def rank_with_stage(stages: PerStage, digits: int | None = None) -> Read:
    """Spearman's rank correlation of a number with the stage after the code.

    Args:
        stages: The number of every stage.
        digits: Decimals that count; numbers that agree in them are equal.
            All by default.
    """

    def compute(run: Run) -> float | None:
        values = drop_code(read_stages(stages)(run))
        if digits is not None:
            values = [_apply(lambda v: round(v, digits), v) for v in values]
        return correlate_ranks(values)

    return compute


def drop_code(numbers: Stages) -> list[float | None]:
    """The numbers of the stages after the code."""
    return [value for stage, value in numbers.items() if stage != CODE]


def correlate_ranks(
    values: Sequence[float | None], places: Sequence[float] | None = None
) -> float | None:
    """Spearman's rank correlation of numbers with their places.

    Args:
        values: The numbers, in order.
        places: Where they are; 0, 1, 2, ... by default.

    Returns:
        The correlation; 0 for equal numbers, which have no trend; None for
        fewer than three, or if one does not exist.
    """
    if len(values) < MIN_PLACES or None in values:
        return None
    if len(set(values)) == 1:
        return 0.0
    from scipy import stats

    places = range(len(values)) if places is None else places
    return float(stats.spearmanr(list(places), list(values)).statistic)


def _apply(function: Callable[..., Any], *values: float | None) -> Any:
    return None if None in values else function(*values)


def _reduce(stages: PerStage, function: Callable[..., float]) -> Read:
    def compute(run: Run) -> float | None:
        values = drop_code(read_stages(stages)(run))
        return None if not values or None in values else function(values)

    return compute
