"""Numbers of one run that claims are about, from its scores per stage.

The stages after the code are those that training shapes: the code itself is
the same for every seed and every region.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from scipy.stats import spearmanr

from tfcomp.claims.evidence import Run

CODE = "code"
MIN_STAGES = 3

Values = Sequence[float | None]
Number = Callable[[Run], float | None]


def score(name: str) -> Number:
    """A score of `metrics.json` (`ood/mse`) or a scalar measure."""
    return lambda run: run.get(name)


def subtract(first: str, second: str) -> Number:
    """Difference of two scores of one run."""

    def compute(run: Run) -> float | None:
        a, b = run.get(first), run.get(second)
        return None if a is None or b is None else a - b

    return compute


def rank_with_stage(name: str, digits: int | None = None) -> Number:
    """Spearman's rank correlation of a number with the stage after the code.

    Args:
        name: Of a number per stage.
        digits: Decimals that count; numbers that agree in them are equal.
            All by default.
    """

    def compute(run: Run) -> float | None:
        values = drop_code(run.get_stages(name))
        if digits is not None:
            values = [None if v is None else round(v, digits) for v in values]
        return correlate_ranks(values)

    return compute


def average(stages: Mapping[str, float | None]) -> float | None:
    """Mean over the stages after the code; None if one has no number."""
    values = drop_code(stages)
    if not values or None in values:
        return None
    return math.fsum(values) / len(values)


def average_stages(name: str) -> Number:
    """Mean of a number over the stages after the code."""
    return lambda run: average(run.get_stages(name))


def largest_drop(name: str) -> Number:
    """The most that a number falls from one stage to the next."""

    def compute(run: Run) -> float | None:
        values = list(run.get_stages(name).values())
        if len(values) < 2 or None in values:
            return None
        pairs = zip(values, values[1:], strict=False)
        return max(before - after for before, after in pairs)

    return compute


def largest(name: str) -> Number:
    """Largest of a number over the stages after the code."""

    def compute(run: Run) -> float | None:
        values = drop_code(run.get_stages(name))
        return None if not values or None in values else max(values)

    return compute


def combine_stages(
    first: str, second: str, function: Callable[[float, float], float]
) -> Callable[[Run], dict[str, float | None]]:
    """A function of two numbers of each stage, by stage."""

    def compute(run: Run) -> dict[str, float | None]:
        a, b = run.get_stages(first), run.get_stages(second)
        return {
            stage: None
            if a[stage] is None or b.get(stage) is None
            else function(a[stage], b[stage])
            for stage in a
        }

    return compute


def drop_code(stages: Mapping[str, float | None]) -> list[float | None]:
    """The numbers of the stages after the code."""
    return [value for stage, value in stages.items() if stage != CODE]


def subtract_code(
    stages: Mapping[str, float | None],
) -> dict[str, float | None]:
    """The numbers of all stages less that of the code, which is 0 then."""
    code = stages.get(CODE)
    return {
        stage: None if code is None or value is None else value - code
        for stage, value in stages.items()
    }


def log_ratio(name: str) -> Callable[[Run, Run], float | None]:
    """Decimal logarithm of a score of one run over that of another."""

    def compute(first: Run, second: Run) -> float | None:
        a, b = first.get(name), second.get(name)
        if a is None or b is None or a <= 0 or b <= 0:
            return None
        return math.log10(a / b)

    return compute


def difference(number: Number) -> Callable[[Run, Run], float | None]:
    """Difference of a number between two runs."""

    def compute(first: Run, second: Run) -> float | None:
        a, b = number(first), number(second)
        return None if a is None or b is None else a - b

    return compute


def correlate_ranks(
    values: Values, places: Sequence[float] | None = None
) -> float | None:
    """Spearman's rank correlation of numbers with their places.

    Args:
        values: The numbers, in order.
        places: Where they are; 0, 1, 2, ... by default.

    Returns:
        The correlation; 0 for equal numbers, which have no trend; None for
        fewer than three, or if one does not exist.
    """
    places = range(len(values)) if places is None else places
    if len(values) < MIN_STAGES or None in values:
        return None
    if len(set(values)) == 1:
        return 0.0
    return float(spearmanr(list(places), list(values)).statistic)
