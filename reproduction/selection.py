"""Selects the runs that speak for a setting, by their flags.

If several groups match a setting, one is taken by an order that looks at no
result; `Group.differences` and `Group.others` name the choice.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reproduction.groups import Group
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets.regions import split_region
from tfcomp.tables.flatten import UNIMPORTANT, Flags

MIN_SEEDS = 3
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


@functools.cache
def read_setting(line: str) -> Flags:
    """Returns all flags of a run, from a flagfile and flags that follow it."""
    return parse_config(f"--flagfile={line}".split()).to_flags()


def list_families(
    groups: Iterable[Group], free: Collection[str]
) -> list[list[Group]]:
    """Sorts groups into families, in an order that depends on flags alone."""
    families: dict[str, list[Group]] = {}
    for group in groups:
        shared = {k: v for k, v in group.flags.items() if k not in free}
        key = repr(sorted(shared.items()))
        families.setdefault(key, []).append(group)
    return [family for _, family in sorted(families.items())]


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
