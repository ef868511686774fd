"""Numbers of one run, or of two at one seed, that claims are about.

Numbers that exist at every stage are a mapping from stages, in the order of
the data flow, and reduced to one. The stages after the code are those that
training shapes; the code itself is the same for every seed and region. A
number is None if anything that it is computed from is missing.
"""

import math
import statistics
from collections.abc import Callable
from itertools import pairwise

from tfcomp.studies.claims.estimation import Read, make_read
from tfcomp.studies.claims.evidence import Run

CODE = "code"

Stages = dict[str, float | None]
# What gives the numbers of a run by stage, or their name.
PerStage = str | Callable[[Run], Stages]


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


def average_late(stages: PerStage) -> Read:
    """Reads the mean over the later half of the stages after the code."""
    return reduce_stages(lambda v: statistics.fmean(v[len(v) // 2 :]), stages)


def take_largest_drop(stages: PerStage) -> Read:
    """Reads the most that a number falls from one stage to the next."""

    def compute(run: Run) -> float | None:
        values = list(read_stages(run, stages).values())
        if len(values) < 2 or None in values:
            return None
        return max(before - after for before, after in pairwise(values))

    return compute
