"""Estimates: a number of every run, and its mean over the seeds of groups."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from collections.abc import Sequence

from tfcomp.claims.evidence import Run
from tfcomp.claims.selection import Group
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import estimate_mean

# A number of one run, or of several runs of the same seed (one a group).
Read = Callable[..., float | None]


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
    if not groups:
        return None
    if isinstance(read, str):
        read = operator.methodcaller("get", read)
    samples = {
        seed: tuple(group.seeds[seed] for group in groups)
        for seed in groups[0].seeds
        if all(seed in group.seeds for group in groups)
    }
    values = {seed: read(*runs) for seed, runs in samples.items()}
    if not values or None in values.values():
        return None
    versions = list_versions(read, list(samples.values()))
    return dataclasses.replace(estimate_mean(values), versions=versions)


def list_versions(
    read: Read, samples: Sequence[tuple[Run, ...]]
) -> tuple[str, ...]:
    """Versions of the code that took the measures in a number.

    A number is made of measures if it is gone without them; what training
    itself wrote has no such version.

    Args:
        read: Computes the number.
        samples: The runs that it is computed from, at every seed.
    """
    versions = {
        str(run.measures.get("version", "unknown"))
        for runs in samples
        if read(*map(_drop_measures, runs)) is None
        for run in runs
    }
    return tuple(sorted(versions))


def _drop_measures(run: Run) -> Run:
    return dataclasses.replace(run, measures={})
