"""Numbers of runs that claims are about, and their estimates over seeds.

A number is of one run, or of several at one seed. Those that exist at every
stage are a mapping from stages, in the order of the data flow, and reduced to
one. The stages after the code are those that training shapes; the code itself
is the same for every seed and region. A number is None if anything that it is
computed from is missing.
"""

import functools
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tfcomp.statistics import seed_tests
from tfcomp.statistics.limits import CORRELATION, REAL, Limits
from tfcomp.statistics.measure import find_limits
from tfcomp.statistics.seed_statistics import compute_statistics
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.claims.selection import Group

CODE = "code"

Stages = dict[str, float | None]
# What gives the numbers of a run by stage, or their name.
PerStage = str | Callable[[Run], Stages]
# A number of one run, or of several runs of the same seed (one a group).
Read = Callable[..., float | None]


def make_read(read: Read | str) -> Read:
    """What reads a score or measure of a run, by its name."""
    return operator.methodcaller("get", read) if isinstance(read, str) else read


def minus(first: float | None, second: float | None) -> float | None:
    """The difference of two numbers."""
    return None if first is None or second is None else first - second


def subtract(first: str, second: str) -> Read:
    """Reads the difference of two scores of one run."""
    return lambda run: minus(run.get(first), run.get(second))


def difference(read: Read | str) -> Read:
    """Reads the difference of a number between two runs."""
    get = make_read(read)
    return lambda first, second: minus(get(first), get(second))


def net(read: Read | str) -> Read:
    """Reads a number of a run less that of its untrained network."""
    get = make_read(read)
    return lambda run: minus(get(run), get(run.start))


def list_all(name: str) -> Read:
    """Reads a score of all runs that are compared, in their order."""
    return lambda *runs: [run.get(name) for run in runs]


def log_ratio(name: str) -> Read:
    """Reads the decimal logarithm of a score of one run over another's."""

    def compute(first: Run, second: Run) -> float | None:
        a, b = first.get(name), second.get(name)
        if a is None or b is None or a <= 0 or b <= 0:
            return None
        return math.log10(a / b)

    return compute


def read_stages(run: Run, stages: PerStage) -> Stages:
    """A number of every stage of a run."""
    return stages(run) if callable(stages) else run.get_stages(stages)


def subtract_code(stages: Stages) -> Stages:
    """A number of every stage less that of the code, which is 0 then."""
    code = stages.get(CODE)
    return {stage: minus(value, code) for stage, value in stages.items()}


def subtract_start(stages: PerStage) -> Callable[[Run], Stages]:
    """A number of every stage less that of the untrained network."""

    def compute(run: Run) -> Stages:
        start = read_stages(run.start, stages)
        found = read_stages(run, stages)
        return {s: minus(value, start.get(s)) for s, value in found.items()}

    return compute


def list_stages(stages: PerStage, end: int | None = None) -> Read:
    """Reads the numbers of the stages after the code, up to an end."""

    def compute(run: Run) -> list[float | None]:
        found = read_stages(run, stages)
        return [value for stage, value in found.items() if stage != CODE][:end]

    return compute


def reduce_stages(
    function: Callable[[list[float]], float], stages: PerStage
) -> Read:
    """Reads what a function makes of the numbers after the code."""
    read = list_stages(stages)

    def compute(run: Run) -> float | None:
        values = read(run)
        return None if not values or None in values else function(values)

    return compute


def take_change(stages: PerStage, end: int | None = None) -> Read:
    """Reads the last number after the code less the first, up to an end."""
    return reduce_stages(lambda v: v[:end][-1] - v[0], stages)


def average(stages: PerStage) -> Read:
    """Reads the mean over the stages after the code."""
    return reduce_stages(statistics.fmean, stages)


def take_largest_drop(stages: PerStage) -> Read:
    """Reads the most that a number falls from one stage to the next."""

    def compute(run: Run) -> float | None:
        values = list(read_stages(run, stages).values())
        if len(values) < 2 or None in values:
            return None
        return max(before - after for before, after in pairwise(values))

    return compute


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        mean: The mean over seeds, or a fitted number.
        low: Lower end of its 95 % interval, if there is one; the mean if seeds
            are all alike.
        values: The number of every seed, if it is a mean.
        unit: What is counted: `seeds`, `sizes`, or seeds of a `share`.
        versions: Of the code that took the measures in it, if any are.
        test: The p at which its interval just reaches a bound, if known.
        trend: Page's p of a rising and of a falling trend, if it is the mean
            rank correlation of one.
    """

    mean: float
    low: float | None
    high: float | None
    count: int
    values: Mapping[int, float]
    unit: str = "seeds"
    versions: tuple[str, ...] = ()
    test: Callable[[float], float] | None = field(default=None, compare=False)
    trend: tuple[float, float] | None = None


# What the seeds have.
Values = Mapping[int, Any]
# From this, and the range of the numbers, to an estimate.
Estimator = Callable[[Values, Limits], Estimate | None]


def estimate_mean(values: Values, limits: Limits = REAL) -> Estimate | None:
    """Mean over seeds; None without seeds, or if one lacks its value."""
    numbers = list(values.values())
    if None not in numbers:
        limits = limits.widen(numbers)
    found = compute_statistics(numbers, limits=limits)
    if found is None:
        return None
    low, high = found.low, found.high
    if low is None and found.count > 1:  # all alike
        low = high = found.mean

    def test(bound: float) -> float:
        from scipy import stats

        if found.low is None:  # all alike
            return float(found.mean == bound)
        error = found.deviation / math.sqrt(found.count)
        error *= limits.measure_slope(found.mean)
        distance = abs(limits.stretch(found.mean) - limits.stretch(bound))
        return float(2 * stats.t.sf(distance / error, found.count - 1))

    return Estimate(found.mean, low, high, found.count, values, test=test)


def estimate_geometric(values: Values, _: Limits = REAL) -> Estimate | None:
    """Geometric mean over seeds, and Student's interval of the logarithms."""
    if any(value is None or value <= 0 for value in values.values()):
        return None
    found = estimate_mean({s: math.log(v) for s, v in values.items()})
    if found is None:
        return None
    mean, low, high = (
        None if x is None else math.exp(x)
        for x in (found.mean, found.low, found.high)
    )

    def test(bound: float) -> float:
        return found.test(math.log(bound))

    return Estimate(mean, low, high, found.count, values, test=test)


def estimate_share(values: Values, _: Limits = REAL) -> Estimate | None:
    """Share of the seeds that do something, as Clopper and Pearson have it."""
    if not values or None in values.values():
        return None
    wins, count = sum(values.values()), len(values)
    ends = seed_tests.compute_share_interval(wins, count)
    test = functools.partial(seed_tests.compute_share_p, wins, count)
    shown = {seed: float(value) for seed, value in values.items()}
    return Estimate(wins / count, *ends, count, shown, "share", test=test)


def estimate_trend(values: Values, _: Limits = REAL) -> Estimate | None:
    """Mean rank correlation with the place, and Page's test over seeds."""
    rows = list(values.values())
    sizes = {len(row or ()) for row in rows}
    if len(sizes) != 1 or min(sizes) < 3 or any(None in row for row in rows):
        return None
    shown = {
        seed: seed_tests.correlate_ranks(row) for seed, row in values.items()
    }
    found = estimate_mean(shown, CORRELATION)
    trend = seed_tests.compute_trend_p(rows) if len(rows) > 1 else None
    return replace(found, low=None, high=None, test=None, trend=trend)


def estimate(
    read: Read | str,
    *groups: Group,
    by: Estimator = estimate_mean,
    limits: Limits | None = None,
) -> Estimate | None:
    """Estimate of a number over the seeds that all groups have.

    None without one, and if the number is missing at one of them: the mean over
    the rest could flatter. Arguments are those of a `Number`; a function reads
    it from one run of each group.
    """
    if limits is None:
        limits = find_limits(read) if isinstance(read, str) else REAL
    get = make_read(read)
    tables = [{run.seed: run for run in group.runs} for group in groups]
    samples = {
        seed: tuple(table[seed] for table in tables)
        for seed in tables[0]
        if all(seed in table for table in tables)
    }
    found = by({s: get(*runs) for s, runs in samples.items()}, limits)
    if found is None:
        return None
    # A number is made of measures if it is gone without them; what training
    # itself wrote has no version.
    versions = {
        str(run.measures.get("version", "unknown"))
        for runs in samples.values()
        if get(*(replace(run, measures={}) for run in runs)) is None
        for run in runs
    }
    return replace(found, versions=tuple(sorted(versions)))
