"""Settings that are compared with each other, chosen together.

Chosen one by one, the best run setting of each would often be another one: a
longer training of one arm would take the comparison away from four arms that
are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfcomp.claims.evidence import Evidence
from tfcomp.claims.evidence import Run
from tfcomp.claims.flag_text import Flags
from tfcomp.claims.selection import Condition
from tfcomp.claims.selection import Group
from tfcomp.claims.selection import find_group
from tfcomp.claims.selection import has_enough
from tfcomp.claims.selection import list_differences
from tfcomp.claims.selection import list_groups
from tfcomp.claims.selection import make_group
from tfcomp.claims.selection import matches


@dataclass(frozen=True)
class Arm:
    """One of the settings of a comparison.

    Attributes:
        reference: The published setting.
        must: What the flags have to be, as in `find_group`.
    """

    reference: Flags
    must: Mapping[str, Condition]


def count_steps(flags: Flags) -> int | None:
    """Steps of a whole training; None if an epoch is a pass over the data.

    A training that does not reach its last epoch leaves no finished run.
    """
    return flags["epochs"] * flags["steps_per_epoch"] or None


def find_arms(
    evidence: Evidence,
    arms: Mapping[str, Arm],
    free: Collection[str],
    alike: Callable[[Flags], Any] = lambda flags: None,
) -> dict[str, Group]:
    """The runs of all settings of a comparison.

    Runs that are alike but for the free flags are a family. The one with the
    most arms that have enough seeds is taken, then the nearest to the
    published setting, then the one with the most runs. An arm that it lacks
    is taken from elsewhere; `find_mismatch` says then what is not alike.

    Args:
        evidence: All runs.
        arms: What is compared, by name.
        free: Flags in which the arms may differ.
        alike: What must be alike besides, computed from the flags.
    """
    families: dict[str, list[Run]] = {}
    for run in evidence.runs:
        if any(matches(run, arm.must) for arm in arms.values()):
            shared = {k: v for k, v in run.setting.items() if k not in free}
            key = repr((sorted(shared.items()), alike(run.flags)))
            families.setdefault(key, []).append(run)
    choices = [_choose(runs, arms) for _, runs in sorted(families.items())]
    best = max(choices, key=lambda g: _rank(g, arms, free), default={})
    return {
        name: _name_others(best[name], evidence, arm)
        if name in best and best[name].runs
        else find_group(evidence, arm.reference, arm.must)
        for name, arm in arms.items()
    }


def find_mismatch(
    first: Group, second: Group, allowed: Collection[str] = ()
) -> str:
    """Why two groups cannot be compared; empty if they can.

    Args:
        first: Runs of one setting.
        second: Runs of another.
        allowed: Flags that the comparison is about.
    """
    if not (first.runs and second.runs):
        return ""
    ours, theirs = first.runs[0].setting, second.runs[0].setting
    differences = list_differences(theirs, ours, allowed)
    if not differences:
        return ""
    return f"not comparable: only one has {', '.join(differences)}"


def find_unequal_training(first: Group, second: Group) -> str:
    """Why two groups were not trained alike; empty if they were."""
    if not (first.runs and second.runs):
        return ""
    ours, theirs = (count_steps(g.runs[0].flags) for g in (first, second))
    if ours is None or theirs is None:
        return "not comparable: the number of training steps is not known"
    if ours == theirs:
        return ""
    return f"not comparable: {ours} training steps and {theirs}"


def _choose(runs: Sequence[Run], arms: Mapping[str, Arm]) -> dict[str, Group]:
    family = Evidence(tuple(runs))
    return {
        name: find_group(family, arm.reference, arm.must)
        for name, arm in arms.items()
    }


def _rank(
    groups: Mapping[str, Group], arms: Mapping[str, Arm], free: Collection[str]
) -> tuple[int, int, int, int]:
    found = [(g, arms[name].reference) for name, g in groups.items() if g.runs]
    enough = sum(has_enough(group.runs) for group, _ in found)
    distances = [
        len(list_differences(group.runs[0].flags, reference, free))
        for group, reference in found
    ]
    total = sum(len(group.differences) for group, _ in found)
    runs = sum(len(group.runs) for group, _ in found)
    return enough, -max(distances), -total, runs


def _name_others(group: Group, evidence: Evidence, arm: Arm) -> Group:
    found = list_groups(evidence.runs, arm.must)
    others = [runs for runs in found if runs[0] not in group.runs]
    return make_group(group.runs, arm.reference, others)
