"""Which runs speak for a part of a claim.

Runs are matched by their flags, whatever sweep they come from. Runs that
differ in nothing but the seed are a group, and only such runs are averaged.
If several groups match a setting, one is taken by an order that looks at no
result: enough seeds to decide, then nearest to the published setting (fewest
flags that differ), then most seeds. The report says what differs. Settings
that are compared with each other are chosen together (`families`).
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


@dataclass(frozen=True)
class Setting:
    """What is asked of the runs behind a number.

    Attributes:
        flagfile: The shipped flagfile of the published setting.
        must: What the flags of a run have to be: values, or functions that
            accept them.
        changes: Flags that follow the flagfile in the published setting.
    """

    flagfile: str
    must: Mapping[str, Condition]
    changes: tuple[str, ...] = ()

    @property
    def reference(self) -> Flags:
        """All flags of the published setting."""
        return _make_reference(self.flagfile, *self.changes)

    def require(self, **must: Condition) -> Setting:
        """The same setting with further conditions."""
        return dataclasses.replace(self, must={**self.must, **must})

    def accepts(self, run: Run) -> bool:
        """Whether the flags of a run are what they have to be."""
        return all(
            condition(run.flags.get(name))
            if callable(condition)
            else condition == run.flags.get(name)
            for name, condition in self.must.items()
        )

    def find(self, evidence: Evidence) -> Group:
        """The group that speaks for this setting; empty if none matches."""

        def rank(runs: list[Run]) -> tuple:
            distance = len(list_differences(runs[0].flags, self.reference))
            identity = repr(sorted(runs[0].setting.items()))
            return min(len(runs), MIN_SEEDS), -distance, len(runs), identity

        groups = list_groups(filter(self.accepts, evidence.runs))
        if not groups:
            return Group()
        best, *others = sorted(groups, key=rank, reverse=True)
        return make_group(best, self.reference, others)


@functools.cache
def _make_reference(flagfile: str, *changes: str) -> Flags:
    return parse_config([f"--flagfile={flagfile}", *changes]).to_flags()


def list_groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Sorts runs by their setting, in order of appearance."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr(sorted(run.setting.items())), []).append(run)
    return list(groups.values())


def has_enough(runs: Sequence[Run]) -> bool:
    """Whether there are enough seeds to decide anything."""
    return len(runs) >= MIN_SEEDS


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
    """The group of some runs.

    Args:
        runs: Runs that differ in their seed alone, at least one.
        others: Runs of every setting that is not used.
    """
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
