"""The classes that claims are declared with, in `claims.toml`.

A `Number` names a number of runs, and its rule. A `Check` judges numbers of
the runs of some cases: of each setting, or of settings that are compared at
equal seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.estimates import (
    Estimator,
    Values,
    estimate_mean,
    estimate_share,
)
from tfcomp.statistics.limits import Limits
from tfcomp.statistics.verdicts import Rule, below
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.tables.flatten import END, START
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Setting

if TYPE_CHECKING:
    from pandas import DataFrame, Series

CODE = "code"
# A path as `ood/mse`; rules for several, which a run meets or not; or what
# computes a number [seeds], or [seeds, stages], of a group at a time.
Column = str | Mapping[str, Rule] | Callable[[Group, str], Any]


@dataclass(frozen=True)
class Number:
    """A number that a claim is about, and the rule that it is judged by.

    Attributes:
        quantity: The number in words, with its unit.
        column: The number of a run, or of every stage if `over` is given.
        name: Where runs have several: the label of its part ends with it.
        less: A path that is subtracted.
        needs: A path without which a run has no number.
        over: Reduces the numbers of the stages after the code.
        from_code: Whether the code counts as the first of these.
        net: Whether the same of the untrained network is subtracted.
        across: Combines the numbers of settings that are compared.
        decides: Whether it counts for the claim or only supports it.
        limits: Its range; by default the range of the score or measure.
        by: Estimates the number from its values by seed.
    """

    quantity: str
    column: Column
    rule: Rule
    name: str = ""
    _: KW_ONLY
    less: str = ""
    needs: str = ""
    over: Callable[[list[float]], Any] | None = None
    from_code: bool = False
    net: bool = False
    across: Callable[..., Any] | None = None
    decides: bool = True
    limits: Limits | None = None
    by: Estimator = estimate_mean

    @property
    def is_plain(self) -> bool:
        """True for a score or measure as it is."""
        changed = self.less or self.over or self.net or self.across
        return isinstance(self.column, str) and not changed

    @property
    def is_measured(self) -> bool:
        """True unless training itself wrote all that it is made of."""
        column = self.column
        is_score = isinstance(column, str) and "/" in column
        is_score |= isinstance(column, Mapping)
        return self.net or bool(self.over) or not is_score

    @property
    def is_share(self) -> bool:
        """True for a share of successes, in which unfitted runs failed."""
        return self.by is estimate_share

    def read(self, groups: Sequence[Group]) -> Values:
        """Returns the number of the groups at every seed that all have."""
        tables = [self._read_net(group) for group in groups]
        across = self.across or (lambda value: value)
        values = {}
        for seed in tables[0]:
            if all(seed in table for table in tables):
                numbers = [table[seed] for table in tables]
                values[seed] = None if None in numbers else across(*numbers)
        return values

    def _read_net(self, group: Group) -> dict[int, Any]:
        numbers = self._read(group, END)
        if not self.net:
            return numbers
        start = self._read(group, START)
        return {seed: minus(v, start[seed]) for seed, v in numbers.items()}

    def _read(self, group: Group, when: str) -> dict[int, Any]:
        column = self.column
        if isinstance(column, Mapping):
            return _to_dict(find_met(group, column))
        if callable(column):
            table = column(group, when)
        else:
            get = group.get_stages if self.over else group.get
            table = get(column, when)
        if self.less:
            table = table - group.get(self.less, when)
        if self.needs:
            table = table.where(group.get(self.needs, when).notna())
        return self._reduce(table) if self.over else _to_dict(table)

    def _reduce(self, stages: DataFrame) -> dict[int, Any]:
        over, first = self.over, 0 if self.from_code else int(CODE in stages)
        assert over is not None
        rows = stages.iloc[:, first:].to_numpy().tolist()
        return {
            seed: over(row) if row and not any(map(math.isnan, row)) else None
            for seed, row in zip(stages.index, rows, strict=True)
        }


def _to_dict(numbers: Series) -> dict[int, float | None]:
    pairs = zip(numbers.index.tolist(), numbers.tolist(), strict=True)
    return {seed: None if v != v else v for seed, v in pairs}


def find_met(group: Group, rules: Mapping[str, Rule]) -> Series:
    """Returns 1 for runs whose scores meet all rules, else 0, by seed."""
    import pandas as pd

    scores = pd.DataFrame({path: group.get(path) for path in rules})
    met = {path: scores[path].map(rules[path].accepts) for path in rules}
    table = pd.DataFrame(met, index=scores.index)
    return table.all(axis=1).astype(float).where(scores.notna().all(axis=1))


def minus(first: Any, second: Any) -> Any:
    """Returns a difference of numbers, or of lists place by place."""
    if first is None or second is None:
        return None
    if isinstance(first, list):
        return [a - b for a, b in zip(first, second, strict=True)]
    return first - second


@dataclass(frozen=True)
class Gate:
    """A score that training must have reached on trained (ID) combinations.

    An unfitted network proves nothing: it is left out, and counted.
    """

    path: str
    rule: Rule

    def select(self, group: Group) -> tuple[Group, str]:
        """Returns the runs that count; how many, unless all do."""
        scores = group.get(self.path).tolist()
        pairs = zip(group.seeds, scores, strict=True)
        fitted = group.keep([s for s, v in pairs if self.rule.accepts(v)])
        words = []
        if len(fitted) < len(group):
            words.append(f"{len(fitted)} of {len(group)} fitted")
        if fitted.num_restarted:
            words.append(f"{fitted.num_restarted} started again")
        return fitted, ", ".join(words)


# A blank image has a relative MSE of 1.
FITTED = Gate("id/relative_mse", below(0.05))
# From stripes alone a network draws a plus and not a bump: its error on bumps
# is large however well it is trained.
PLACED = Gate("id/position_accuracy", Rule(low=0.95))


def select_fitted(group: Group) -> Group:
    """Returns the fitted runs: on stripes, those with peaks in place."""
    striped = "stripes" in group.flags["dataset"]
    return (PLACED if striped else FITTED).select(group)[0]


@dataclass(frozen=True)
class Case:
    """Runs that a test judges: one group, or several that are compared.

    `problem` says why they prove nothing, though they pass their gates.
    """

    label: str
    groups: Sequence[Group]
    problem: str = ""
    decides: bool = True


Runs = Mapping[str, Setting] | Callable[[Evidence], Iterable[Case]]


@dataclass(frozen=True)
class Check:
    """Numbers of the runs of some cases: of settings, or as found.

    `gates` has one gate for all groups of a case, or one for each.
    """

    runs: Runs
    numbers: Sequence[Number]
    gates: Sequence[Gate] = (FITTED,)

    def list_cases(self, evidence: Evidence) -> Iterable[Case]:
        """Returns the cases of some evidence."""
        if callable(self.runs):
            return self.runs(evidence)
        return [
            Case(label, [setting.find(evidence.groups)])
            for label, setting in self.runs.items()
        ]


# A test whose rules depend on what it finds returns judged parts.
OwnCheck = Callable[[Evidence], list[Any]]
Checks = Sequence[Check | OwnCheck]


@dataclass(frozen=True)
class Declaration:
    """The tests of a claim: ours, the paper's own, and of unseen seeds.

    `paper` is empty if the paper's test is ours, `unseen` if it is the same.
    """

    ours: Checks
    paper: Checks = ()
    unseen: Checks = ()
