"""Which runs speak for a part of a claim.

Runs are matched by their flags, whatever sweep they come from. Runs that
differ in nothing but the seed are a group, and only such runs are averaged.
If several groups match a setting, one is taken by an order that looks at no
result, and the report says what differs.

Settings that are compared are chosen together, from a family: runs that are
alike in everything but a few free flags. Chosen one by one, they would often be
of several families, which cannot be compared.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.regions import split_region
from tfcomp.studies.claims.evidence import UNIMPORTANT, Evidence, Run
from tfcomp.studies.claims.packed_evidence import Flags

# Two seeds have an interval of 12.7 standard errors on either side: formally
# enough, and blind to the third seed that behaves in another way.
MIN_SEEDS = 3

Condition = Any  # a value, or a function that accepts values


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone, in its order; none if none match.

    Attributes:
        differences: From the published setting, as `depth=6`.
        others: Settings that matched as well, with their number of seeds.
    """

    runs: tuple[Run, ...] = ()
    differences: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What is asked of the runs behind a number: what some flags must be.

    The published setting is a shipped flagfile, and changes that follow it.
    """

    flagfile: str
    must: Mapping[str, Condition]
    changes: tuple[str, ...] = ()

    @property
    def reference(self) -> Flags:
        """All flags of the published setting."""
        return read_setting(" ".join([self.flagfile, *self.changes]))

    def require(self, **must: Condition) -> Setting:
        return dataclasses.replace(self, must={**self.must, **must})

    def accepts(self, run: Run) -> bool:
        return all(
            condition(run.flags.get(name))
            if callable(condition)
            else condition == run.flags.get(name)
            for name, condition in self.must.items()
        )

    def find(self, evidence: Evidence) -> Group:
        """The group that speaks for this setting; empty if none matches.

        One with enough seeds to decide, then the nearest to the published
        setting (fewest flags that differ), then the one with most seeds.
        """

        def rank(runs: list[Run]) -> tuple:
            distance = len(list_differences(runs[0].flags, self.reference))
            identity = repr(sorted(runs[0].setting.items()))
            return min(len(runs), MIN_SEEDS), -distance, len(runs), identity

        groups = list_groups(filter(self.accepts, evidence.runs))
        if not groups:
            return Group()
        best, *others = sorted(groups, key=rank, reverse=True)
        return make_group(best, self.reference, others)


@dataclass(frozen=True)
class Series:
    """Settings that differ in one flag, and are alike in all others.

    Of several families, the one with the most wanted values (that have enough
    seeds) is taken, then with the most values, then the nearest to the
    published setting. Where a value has enough seeds, those that have not are
    left out, so that a stray run does not undo the others; but a wanted value
    stays.
    """

    setting: Setting
    flag: str
    wanted: Collection[Any] = ()

    def find(self, evidence: Evidence) -> dict[Any, Group]:
        """The groups of one family by the value of the flag, rising."""
        runs = filter(self.setting.accepts, evidence.runs)
        families = [self._sort(f) for f in list_families(runs, [self.flag])]
        best = max(reversed(families), key=self._rank, default={})
        enough = {value for value, found in best.items() if has_enough(found)}
        kept = {*enough, *self.wanted} if enough else set(best)
        stray = [found for value, found in best.items() if value not in kept]
        reference = self.setting.reference
        return {
            value: make_group(found, reference | {self.flag: value}, stray)
            for value, found in best.items()
            if value in kept
        }

    def _sort(self, family: list[Run]) -> dict[Any, list[Run]]:
        by_value = {r[0].flags[self.flag]: r for r in list_groups(family)}
        return dict(sorted(by_value.items()))

    def _rank(self, family: Mapping[Any, list[Run]]) -> tuple:
        enough = [value for value, runs in family.items() if has_enough(runs)]
        named = sum(value in self.wanted for value in enough)
        flags = next(iter(family.values()))[0].flags
        reference = self.setting.reference
        distance = len(list_differences(flags, reference, [self.flag]))
        return named, len(enough), -distance, sum(map(len, family.values()))


@dataclass(frozen=True)
class Arms:
    """Settings that are compared, and differ in free flags alone.

    With `equal_steps`, all must have been trained for as many. The family with
    the most arms that have enough seeds is taken, then the nearest to the
    published setting, then the one with the most runs.
    """

    settings: Mapping[str, Setting]
    free: Collection[str]
    equal_steps: bool = False

    def find(self, evidence: Evidence) -> dict[str, Group]:
        """The group of every arm; from elsewhere if the family lacks it.

        `find_mismatch` says then why it cannot be compared.
        """
        runs = [
            run
            for run in evidence.runs
            if any(arm.accepts(run) for arm in self.settings.values())
        ]
        choices = [
            {
                name: arm.find(Evidence(tuple(family)))
                for name, arm in self.settings.items()
            }
            for family in list_families(runs, self.free, self.equal_steps)
        ]
        found = dict(max(choices, key=self._rank, default={}))
        for name, arm in self.settings.items():
            if name not in found or not found[name].runs:
                found[name] = arm.find(evidence)
                continue
            chosen = found[name].runs
            groups = list_groups(filter(arm.accepts, evidence.runs))
            others = [other for other in groups if other[0] not in chosen]
            found[name] = make_group(chosen, arm.reference, others)
        return found

    def find_mismatch(self, first: Group, second: Group) -> str:
        """Why two groups cannot be compared; empty if they can."""
        if not (first.runs and second.runs):
            return ""
        ours, theirs = first.runs[0], second.runs[0]
        found = list_differences(theirs.setting, ours.setting, self.free)
        if found:
            return f"not comparable: only one has {', '.join(found)}"
        if not self.equal_steps:
            return ""
        steps = [count_steps(run.flags) for run in (ours, theirs)]
        if None in steps:
            return "not comparable: the number of training steps is not known"
        if steps[0] != steps[1]:
            return f"not comparable: {steps[0]} training steps and {steps[1]}"
        return ""

    def _rank(self, groups: Mapping[str, Group]) -> tuple:
        found = {name: group for name, group in groups.items() if group.runs}
        distances = [
            list_differences(
                group.runs[0].flags, self.settings[name].reference, self.free
            )
            for name, group in found.items()
        ]
        return (
            sum(has_enough(group.runs) for group in found.values()),
            -max(map(len, distances)),
            -sum(len(group.differences) for group in found.values()),
            sum(len(group.runs) for group in found.values()),
        )


@functools.cache
def read_setting(line: str) -> Flags:
    """All flags of a run, from a flagfile and flags that follow it."""
    return parse_config(f"--flagfile={line}".split()).to_flags()


def list_groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Sorts runs by their setting, in order of appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def list_families(
    runs: Iterable[Run], free: Collection[str], equal_steps: bool = False
) -> list[list[Run]]:
    """Sorts runs into families, in an order that depends on flags alone."""
    families: dict[str, list[Run]] = {}
    for run in runs:
        shared = {k: v for k, v in run.setting.items() if k not in free}
        steps = count_steps(run.flags) if equal_steps else None
        key = repr((sorted(shared.items()), steps))
        families.setdefault(key, []).append(run)
    return [family for _, family in sorted(families.items())]


def has_enough(runs: Sequence[Run]) -> bool:
    """Whether there are enough seeds to decide anything."""
    return len(runs) >= MIN_SEEDS


def count_steps(flags: Flags) -> int | None:
    """Steps of a whole training; None if an epoch is a pass over the data.

    A training that does not reach its last epoch leaves no finished run.
    """
    return flags["epochs"] * flags["steps_per_epoch"] or None


def list_differences(
    flags: Flags, reference: Flags, free: Collection[str] = ()
) -> list[str]:
    """Flags, but the free ones, that are not as in the reference."""
    return [
        f"{name}={flags.get(name)}"
        for name, value in reference.items()
        if name not in UNIMPORTANT
        and name not in free
        and flags.get(name) != value
    ]


def make_group(
    runs: Iterable[Run], reference: Flags, others: Iterable[list[Run]] = ()
) -> Group:
    """The group of runs of one setting, beside those that are not used."""
    ordered = sorted(runs, key=lambda run: run.seed)
    flags = ordered[0].flags
    unused = [
        f"{', '.join(list_differences(other[0].flags, flags))} "
        f"({len(other)} seeds)"
        for other in others
    ]
    differences = list_differences(flags, reference)
    return Group(tuple(ordered), tuple(differences), tuple(unused))


def region_is(region: str) -> Callable[[str], bool]:
    """Accepts regions of one kind, as all corners for `corner:14`."""
    kind, _ = split_region(region)
    return lambda spec: split_region(spec)[0] == kind


def is_positive(value: float) -> bool:
    """Accepts numbers above 0."""
    return value > 0
