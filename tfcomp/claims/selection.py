"""Which runs speak for which part of a claim.

Runs are matched by their flags, whatever sweep they come from. Runs that
differ in anything but the seed are never averaged: they are groups. Of the
groups that match, one is taken by a fixed order, before any result is looked
at: enough seeds to decide, then nearest to the published setting (fewest
flags that differ), then most seeds. What differs is said.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.claims.evidence import UNIMPORTANT
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Flags
from tfcomp.claims.evidence import Run
from tfcomp.claims.verdict import MIN_SEEDS
from tfcomp.claims.verdict import Estimate
from tfcomp.claims.verdict import estimate_mean
from tfcomp.run_flags import parse_config

Condition = Any  # a value, or a function of the value
Number = Callable[[Run], float | None]


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone.

    Attributes:
        runs: In the order of their seeds; empty if nothing matched.
        differences: From the published setting, as `depth=6`.
        others: Settings that matched as well and are not used, with their
            number of seeds.
    """

    runs: tuple[Run, ...] = ()
    differences: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def seeds(self) -> dict[int, Run]:
        """The runs by seed."""
        return {run.seed: run for run in self.runs}


@functools.cache
def make_reference(flagfile: str, *flags: str) -> Flags:
    """Flags of a shipped flagfile, with more flags behind it."""
    config = parse_config([f"--flagfile={flagfile}", *flags])
    return config.to_flags()


def find_group(
    evidence: Evidence, reference: Flags, must: Mapping[str, Condition]
) -> Group:
    """The runs for one part of a claim.

    Args:
        evidence: All runs.
        reference: The published setting.
        must: What the flags have to be: values, or functions that accept
            them.
    """
    groups = list_groups(evidence.runs, must)
    if not groups:
        return Group()

    def rank(runs: list[Run]) -> tuple:
        distance = len(list_differences(runs[0].flags, reference))
        identity = repr(sorted(runs[0].setting.items()))
        return min(len(runs), MIN_SEEDS), -distance, len(runs), identity

    groups.sort(key=rank, reverse=True)
    best, *others = groups
    return _make_group(best, reference, others)


def find_series(
    evidence: Evidence,
    reference: Flags,
    must: Mapping[str, Condition],
    flag: str,
) -> dict[Any, Group]:
    """Groups that differ in one flag alone, by its value, rising.

    Of several such families, the one with the most values (that have enough
    seeds) is taken, then the nearest to the published setting.

    Args:
        evidence: All runs.
        reference: The published setting.
        must: As in `find_group`.
        flag: The flag that varies.
    """
    families: dict[str, list[list[Run]]] = {}
    for runs in list_groups(evidence.runs, must):
        shared = {k: v for k, v in runs[0].setting.items() if k != flag}
        families.setdefault(repr(sorted(shared.items())), []).append(runs)
    if not families:
        return {}

    def rank(item: tuple[str, list[list[Run]]]) -> tuple:
        key, groups = item
        enough = sum(len(runs) >= MIN_SEEDS for runs in groups)
        flags = groups[0][0].flags | {flag: reference[flag]}
        distance = len(list_differences(flags, reference))
        return enough, -distance, sum(map(len, groups)), key

    _, best = max(families.items(), key=rank)
    best.sort(key=lambda runs: runs[0].flags[flag])
    return {
        value: _make_group(runs, reference | {flag: value})
        for runs in best
        for value in [runs[0].flags[flag]]
    }


def find_mismatch(
    first: Group, second: Group, allowed: Iterable[str] = ()
) -> str:
    """Why two groups cannot be compared; empty if they can.

    Args:
        first: Runs of one setting.
        second: Runs of another.
        allowed: Flags that the comparison is about.
    """
    if not (first.runs and second.runs):
        return ""
    theirs = second.runs[0].setting | dict.fromkeys(allowed)
    ours = first.runs[0].setting | dict.fromkeys(allowed)
    differences = list_differences(theirs, ours)
    if not differences:
        return ""
    return f"not comparable: only one has {', '.join(differences)}"


def list_groups(
    runs: Iterable[Run], must: Mapping[str, Condition]
) -> list[list[Run]]:
    """All runs that match, by setting."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if all(_accepts(c, run.flags.get(name)) for name, c in must.items()):
            key = repr(sorted(run.setting.items()))
            groups.setdefault(key, []).append(run)
    return list(groups.values())


def list_differences(flags: Flags, reference: Flags) -> list[str]:
    """Flags that are not as in the reference, as `depth=6`."""
    return [
        f"{name}={flags[name]}"
        for name, value in reference.items()
        if name not in UNIMPORTANT and flags.get(name) != value
    ]


def estimate(group: Group, number: Number) -> Estimate | None:
    """Mean of a number over the seeds of a group.

    None if a run lacks the number: the mean over the rest could flatter.
    """
    values = {run.seed: number(run) for run in group.runs}
    if any(value is None for value in values.values()):
        return None
    return estimate_mean(values)


def estimate_difference(
    first: Group, second: Group, difference: Callable[[Run, Run], float | None]
) -> Estimate | None:
    """Mean of a difference of two groups over the seeds that both have."""
    values = {
        seed: difference(run, second.seeds[seed])
        for seed, run in first.seeds.items()
        if seed in second.seeds
    }
    if any(value is None for value in values.values()):
        return None
    return estimate_mean(values)


def region_is(kind: str) -> Callable[[str], bool]:
    """Accepts regions of a kind, as `corner` for `corner:14`."""
    return lambda spec: spec.partition(":")[0] == kind


def at_least(bound: float) -> Callable[[float], bool]:
    """Accepts numbers from the bound on."""
    return lambda value: value >= bound


def is_positive(value: float) -> bool:
    """Accepts numbers above 0."""
    return value > 0


def _make_group(
    runs: Iterable[Run], reference: Flags, others: Sequence[list[Run]] = ()
) -> Group:
    ordered = sorted(runs, key=lambda run: run.seed)
    flags = ordered[0].flags
    return Group(
        tuple(ordered),
        tuple(list_differences(flags, reference)),
        tuple(
            f"{', '.join(list_differences(other[0].flags, flags))} "
            f"({len(other)} seeds)"
            for other in others
        ),
    )


def _accepts(condition: Condition, value: Any) -> bool:
    return condition(value) if callable(condition) else condition == value
