"""Settings that are compared with each other, chosen together.

Runs that are alike in everything but a few free flags are a family. Chosen one
by one, the best group of each setting would often be of another family: a
longer training of one arm would take it out of a comparison that could be
made.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.packed_evidence import Flags
from tfcomp.studies.claims.selection import (
    Group,
    Setting,
    has_enough,
    list_differences,
    list_groups,
    make_group,
)


@dataclass(frozen=True)
class Series:
    """Settings that differ in one flag, and are alike in all others.

    Of several families, the one with the most wanted values (that have enough
    seeds) is taken, then with the most values, then the nearest to the
    published setting. Where a value has enough seeds, those that have not are
    left out, so that a stray run does not undo the others; but a wanted value
    stays.

    Attributes:
        setting: What all runs have to be.
        wanted: Values that a claim names.
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
        num_runs = sum(map(len, family.values()))
        return named, len(enough), -distance, num_runs


@dataclass(frozen=True)
class Arms:
    """Settings that are compared with each other.

    The family with the most arms that have enough seeds is taken, then the
    nearest to the published setting, then the one with the most runs.

    Attributes:
        free: Flags in which the arms may differ.
        equal_steps: Whether all must have been trained for as many steps,
            which the free flags may not show.
    """

    settings: Mapping[str, Setting]
    free: Collection[str]
    equal_steps: bool = False

    def find(self, evidence: Evidence) -> dict[str, Group]:
        """The group of every arm; empty for one without runs.

        An arm that the family lacks is taken from elsewhere; `find_mismatch`
        says then why it cannot be compared.
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
        best = max(choices, key=self._rank, default={})
        return {
            name: _name_others(best[name], evidence, arm)
            if name in best and best[name].runs
            else arm.find(evidence)
            for name, arm in self.settings.items()
        }

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


def count_steps(flags: Flags) -> int | None:
    """Steps of a whole training; None if an epoch is a pass over the data.

    A training that does not reach its last epoch leaves no finished run.
    """
    return flags["epochs"] * flags["steps_per_epoch"] or None


def list_families(
    runs: Iterable[Run], free: Collection[str], equal_steps: bool = False
) -> list[list[Run]]:
    """Sorts runs into families, in an order that depends on flags alone.

    Args:
        free: Flags in which runs of a family may differ.
        equal_steps: Whether they must share the number of training steps.
    """
    families: dict[str, list[Run]] = {}
    for run in runs:
        shared = {k: v for k, v in run.setting.items() if k not in free}
        steps = count_steps(run.flags) if equal_steps else None
        key = repr((sorted(shared.items()), steps))
        families.setdefault(key, []).append(run)
    return [family for _, family in sorted(families.items())]


def _name_others(group: Group, evidence: Evidence, arm: Setting) -> Group:
    groups = list_groups(filter(arm.accepts, evidence.runs))
    others = [runs for runs in groups if runs[0] not in group.runs]
    return make_group(group.runs, arm.reference, others)
