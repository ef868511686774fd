"""Which runs speak for which part of a claim.

Runs are matched by their flags, whatever sweep they come from. Runs that
differ in anything but the seed are never averaged: they are groups. Of the
groups that match, one is taken by a fixed order, before any result is looked
at: enough seeds to decide, then nearest to the published setting (fewest
flags that differ), then most seeds. What differs is said. Settings that are
compared with each other are chosen together (`comparison`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.claims.evidence import UNIMPORTANT
from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.flag_text import Flags
from tfcomp.claims.verdict import MIN_SEEDS
from tfcomp.config.run_flags import parse_config

Condition = Any  # a value, or a function of the value


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
    return make_group(best, reference, others)


def find_series(
    evidence: Evidence,
    reference: Flags,
    must: Mapping[str, Condition],
    flag: str,
    wanted: Collection[Any] = (),
) -> dict[Any, Group]:
    """Groups that differ in one flag alone, by its value, rising.

    Of several such families, the one with the most wanted values (that have
    enough seeds) is taken, then with the most values, then the nearest to the
    published setting. Where a value has enough seeds, those that have not are
    left out, so that a stray run does not undo the others; but a wanted value
    stays.

    Args:
        evidence: All runs.
        reference: The published setting.
        must: As in `find_group`.
        flag: The flag that varies.
        wanted: Values that a claim names.
    """
    families: dict[str, list[list[Run]]] = {}
    for runs in list_groups(evidence.runs, must):
        shared = {k: v for k, v in runs[0].setting.items() if k != flag}
        families.setdefault(repr(sorted(shared.items())), []).append(runs)
    if not families:
        return {}

    def rank(item: tuple[str, list[list[Run]]]) -> tuple:
        key, groups = item
        enough = [r[0].flags[flag] for r in groups if has_enough(r)]
        distance = len(list_differences(groups[0][0].flags, reference, [flag]))
        named = sum(value in wanted for value in enough)
        return named, len(enough), -distance, sum(map(len, groups)), key

    _, best = max(families.items(), key=rank)
    best.sort(key=lambda runs: runs[0].flags[flag])
    stray = [
        runs
        for runs in best
        if any(map(has_enough, best))
        and not has_enough(runs)
        and runs[0].flags[flag] not in wanted
    ]
    return {
        value: make_group(runs, reference | {flag: value}, stray)
        for runs in best
        for value in [runs[0].flags[flag]]
        if runs not in stray
    }


def list_groups(
    runs: Iterable[Run], must: Mapping[str, Condition]
) -> list[list[Run]]:
    """All runs that match, by setting."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if matches(run, must):
            key = repr(sorted(run.setting.items()))
            groups.setdefault(key, []).append(run)
    return list(groups.values())


def matches(run: Run, must: Mapping[str, Condition]) -> bool:
    """Whether the flags of a run are what they have to be."""
    return all(_accepts(c, run.flags.get(name)) for name, c in must.items())


def has_enough(runs: Sequence[Run]) -> bool:
    """Whether there are enough seeds to decide anything."""
    return len(runs) >= MIN_SEEDS


def list_differences(
    flags: Flags, reference: Flags, free: Collection[str] = ()
) -> list[str]:
    """Flags that are not as in the reference, as `depth=6`.

    Args:
        flags: The flags.
        reference: What they are compared with.
        free: Flags that may differ.
    """
    return [
        f"{name}={flags.get(name)}"
        for name, value in reference.items()
        if name not in UNIMPORTANT
        and name not in free
        and flags.get(name) != value
    ]


def region_is(kind: str) -> Callable[[str], bool]:
    """Accepts regions of a kind, as `corner` for `corner:14`."""
    return lambda spec: spec.partition(":")[0] == kind


def at_least(bound: float) -> Callable[[float], bool]:
    """Accepts numbers from the bound on."""
    return lambda value: value >= bound


def is_positive(value: float) -> bool:
    """Accepts numbers above 0."""
    return value > 0


def make_group(
    runs: Iterable[Run], reference: Flags, others: Sequence[list[Run]] = ()
) -> Group:
    """The group of some runs.

    Args:
        runs: Runs that differ in their seed alone, at least one.
        reference: The published setting.
        others: Runs of every setting that is not used.
    """
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
