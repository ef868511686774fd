"""Selects the runs that speak for a setting, by their flags.

If several groups match a setting, one is taken by an order that looks at no
result; `Group.differences` and `Group.others` name the choice. Settings that
are compared are chosen from a family: groups that differ in free flags alone.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reproduction.groups import Group
from reproduction.verdicts import MIN_SEEDS
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.regions import split_region
from tfcomp.tables.flatten import UNIMPORTANT, Flags

Condition = Any  # a value, or a function that accepts values


@dataclass(frozen=True)
class Setting:
    """Conditions on some flags; a published flagfile, and changes to it."""

    flagfile: str
    must: Mapping[str, Condition]
    changes: tuple[str, ...] = ()

    @property
    def reference(self) -> Flags:
        """All flags of the published setting."""
        return read_setting(" ".join([self.flagfile, *self.changes]))

    def require(self, **must: Condition) -> "Setting":
        """Returns the setting with more conditions."""
        return dataclasses.replace(self, must={**self.must, **must})

    def accepts(self, group: Group) -> bool:
        """Returns True if a group was not trained on all, and meets `must`."""
        return all(
            condition(group.flags.get(name))
            if callable(condition)
            else condition == group.flags.get(name)
            for name, condition in {"train_all": False, **self.must}.items()
        )

    def find(self, groups: Iterable[Group]) -> Group:
        """Returns the group with enough seeds, then nearest, then largest."""

        def rank(group: Group) -> tuple:
            distance = len(list_differences(group.flags, self.reference))
            identity = repr(sorted(group.flags.items()))
            return min(len(group), MIN_SEEDS), -distance, len(group), identity

        found = sorted(filter(self.accepts, groups), key=rank, reverse=True)
        if not found:
            return Group()
        return describe(found[0], self.reference, found[1:])


def find_series(
    groups: Iterable[Group],
    setting: Setting,
    flag: str,
    wanted: Collection[Any] = (),
) -> dict[Any, Group]:
    """Returns groups that differ in one flag alone, by its value, rising."""

    def rank(family: Mapping[Any, Group]) -> tuple:
        enough = [value for value, group in family.items() if has_enough(group)]
        named = sum(value in wanted for value in enough)
        flags = next(iter(family.values())).flags
        distance = len(list_differences(flags, setting.reference, [flag]))
        return named, len(enough), -distance, sum(map(len, family.values()))

    families = [
        {group.flags[flag]: group for group in family}
        for family in list_families(filter(setting.accepts, groups), [flag])
    ]
    best = dict(sorted(max(reversed(families), key=rank, default={}).items()))
    enough = {value for value, group in best.items() if has_enough(group)}
    # Values with too few seeds stay if they are wanted, or if all are such.
    kept = {*enough, *wanted} if enough else set(best)
    stray = [group for value, group in best.items() if value not in kept]
    return {
        value: describe(group, setting.reference | {flag: value}, stray)
        for value, group in best.items()
        if value in kept
    }


@dataclass(frozen=True)
class Arms:
    """Settings that are compared, and differ in free flags alone."""

    settings: Mapping[str, Setting]
    free: Collection[str]
    equal_steps: bool = False

    def find(self, groups: Iterable[Group]) -> dict[str, Group]:
        """Returns the group of every arm; from elsewhere if it lacks one."""
        arms = self.settings.items()
        groups = [g for g in groups if any(arm.accepts(g) for _, arm in arms)]
        choices = [
            {name: arm.find(family) for name, arm in arms}
            for family in list_families(groups, self.free, self.equal_steps)
        ]
        best = max(choices, key=self._rank, default={})
        found = {}
        for name, arm in arms:
            group = best.get(name, Group())
            others = [g for g in groups if g.flags != group.flags]
            found[name] = (
                describe(group, arm.reference, filter(arm.accepts, others))
                if len(group)
                else arm.find(groups)
            )
        return found

    def find_mismatch(self, first: Group, second: Group) -> str:
        """Returns why two groups cannot be compared; empty if they can."""
        if not (len(first) and len(second)):
            return ""
        found = list_differences(second.flags, first.flags, self.free)
        if found:
            return f"not comparable: only one has {', '.join(found)}"
        steps = [count_steps(group.flags) for group in (first, second)]
        if self.equal_steps and None in steps:
            return "not comparable: the number of training steps is not known"
        if self.equal_steps and steps[0] != steps[1]:
            return f"not comparable: {steps[0]} training steps and {steps[1]}"
        return ""

    def _rank(self, arms: Mapping[str, Group]) -> tuple:
        found = [group for group in arms.values() if len(group)]
        distances = [
            len(list_differences(arms[name].flags, arm.reference, self.free))
            for name, arm in self.settings.items()
            if len(arms[name])
        ]
        return (
            sum(map(has_enough, found)),
            -max(distances, default=0),
            -sum(len(group.differences) for group in found),
            sum(map(len, found)),
        )


@functools.cache
def read_setting(line: str) -> Flags:
    """Returns all flags of a run, from a flagfile and flags that follow it."""
    return parse_config(f"--flagfile={line}".split()).to_flags()


def list_families(
    groups: Iterable[Group], free: Collection[str], equal_steps: bool = False
) -> list[list[Group]]:
    """Sorts groups into families, in an order that depends on flags alone."""
    families: dict[str, list[Group]] = {}
    for group in groups:
        shared = {k: v for k, v in group.flags.items() if k not in free}
        steps = count_steps(group.flags) if equal_steps else None
        key = repr((sorted(shared.items()), steps))
        families.setdefault(key, []).append(group)
    return [family for _, family in sorted(families.items())]


def has_enough(group: Group) -> bool:
    """Returns True if there are enough seeds to decide anything."""
    return len(group) >= MIN_SEEDS


def count_steps(flags: Flags) -> int | None:
    """Returns the steps of a training; None if an epoch is a pass."""
    return flags["epochs"] * flags["steps_per_epoch"] or None


def list_differences(
    flags: Flags, reference: Flags, free: Collection[str] = ()
) -> list[str]:
    """Returns flags, but the free ones, that are not as in the reference."""
    return [
        f"{name}={flags.get(name)}"
        for name, value in reference.items()
        if name not in UNIMPORTANT
        and name not in free
        and flags.get(name) != value
    ]


def describe(
    group: Group, reference: Flags, others: Iterable[Group] = ()
) -> Group:
    """Adds to a group its differences from a setting, and unused groups."""
    unused = [
        f"{', '.join(list_differences(other.flags, group.flags))} "
        f"({len(other)} seeds)"
        for other in others
    ]
    differences = list_differences(group.flags, reference)
    return dataclasses.replace(
        group, differences=tuple(differences), others=tuple(unused)
    )


def region_is(region: str) -> Callable[[str], bool]:
    """Accepts regions of one kind, as all corners for `corner:14`."""
    kind, _ = split_region(region)
    return lambda spec: split_region(spec)[0] == kind
