"""Estimates: a number of every run, and its mean over the seeds of groups."""

from __future__ import annotations

import operator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace

from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Group
from tfcomp.statistics.seed_statistics import compute_statistics

# A number of one run, or of several runs of the same seed (one a group).
Read = Callable[..., float | None]


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        mean: The mean over seeds, or a fitted number.
        low: Lower end of its 95 % interval (Student); None if there is none.
        high: Upper end.
        count: Number of seeds (or sizes) behind it.
        values: The number of every seed, if it is a mean.
        unit: What is counted, `seeds` or `sizes`.
        versions: Of the code that took the measures in it; empty if it is
            made of none.
    """

    mean: float
    low: float | None
    high: float | None
    count: int
    values: Mapping[int, float]
    unit: str = "seeds"
    versions: tuple[str, ...] = ()


def estimate(read: Read | str, *groups: Group) -> Estimate | None:
    """Mean of a number over the seeds that all groups have.

    Args:
        read: Computes the number from one run of each group; or the name of
            a score or measure.
        *groups: One group, or several that are compared.

    Returns:
        The estimate. None without a common seed, and if the number is missing
        at one of them: the mean over the rest could flatter.
    """
    if isinstance(read, str):
        read = operator.methodcaller("get", read)
    tables = [{run.seed: run for run in group.runs} for group in groups]
    samples = {
        seed: tuple(table[seed] for table in tables)
        for seed in (tables[0] if tables else ())
        if all(seed in table for table in tables)
    }
    found = estimate_mean({s: read(*runs) for s, runs in samples.items()})
    if found is None:
        return None
    return replace(found, versions=_list_versions(read, samples.values()))


def estimate_mean(values: Mapping[int, float | None]) -> Estimate | None:
    """Mean over seeds; None without seeds, or if one lacks its value."""
    found = compute_statistics(list(values.values()))
    if found is None:
        return None
    low = high = None
    if found.half_width is not None:
        low, high = found.mean - found.half_width, found.mean + found.half_width
    return Estimate(found.mean, low, high, found.count, values)


def _list_versions(
    read: Read, samples: Iterable[tuple[Run, ...]]
) -> tuple[str, ...]:
    """Versions of the code that took the measures in a number.

    A number is made of measures if it is gone without them; what training
    itself wrote has no such version.
    """
    versions = {
        str(run.measures.get("version", "unknown"))
        for runs in samples
        if read(*(replace(run, measures={}) for run in runs)) is None
        for run in runs
    }
    return tuple(sorted(versions))
