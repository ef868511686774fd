"""Estimates: a number of every run, and its mean over the seeds of a group."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from collections.abc import Sequence

from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import estimate_mean

Number = Callable[[Run], float | None]


def estimate(group: Group, number: Number) -> Estimate | None:
    """Mean of a number over the seeds of a group.

    None if a run lacks the number: the mean over the rest could flatter.
    """
    return _estimate([(run,) for run in group.runs], number)


def estimate_difference(
    first: Group, second: Group, difference: Callable[[Run, Run], float | None]
) -> Estimate | None:
    """Mean of a difference of two groups over the seeds that both have."""
    pairs = [
        (run, second.seeds[seed])
        for seed, run in first.seeds.items()
        if seed in second.seeds
    ]
    return _estimate(pairs, difference)


def list_versions(
    samples: Sequence[tuple[Run, ...]], number: Callable[..., float | None]
) -> tuple[str, ...]:
    """Versions of the code that took the measures in a number.

    A number is made of measures if it is gone without them; what training
    itself wrote has no such version.

    Args:
        samples: The runs that the number is computed of, at each seed.
        number: The function of these runs.
    """
    versions = {
        str(run.measures.get("version", "unknown"))
        for runs in samples
        if number(*map(_drop_measures, runs)) is None
        for run in runs
    }
    return tuple(sorted(versions))


def _estimate(
    samples: Sequence[tuple[Run, ...]], number: Callable[..., float | None]
) -> Estimate | None:
    values = {runs[0].seed: number(*runs) for runs in samples}
    if not values or any(value is None for value in values.values()):
        return None
    versions = list_versions(samples, number)
    return dataclasses.replace(estimate_mean(values), versions=versions)


def _drop_measures(run: Run) -> Run:
    return dataclasses.replace(run, measures={})
