"""The classes that claims are declared with, in `claims.toml`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from reproduction.claims.evidence import Evidence
from reproduction.groups import Group
from reproduction.selection import Setting
from reproduction.verdicts import Rule, below
from tfcomp.statistics import estimates
from tfcomp.statistics.limits import Limits
from tfcomp.tables.flatten import END, START

if TYPE_CHECKING:
    from pandas import Series

CODE = "code"
# A path as `ood/mse`; rules for several, which a run meets or not; or what
# computes a number [seeds], or [seeds, stages], of a group at a time.
Column = str | Mapping[str, Rule] | Callable[[Group, str], Any]


@dataclass(frozen=True)
class Number:
    """A number that a claim is about, and the rule that it is judged by."""

    quantity: str  # in words, with its unit
    column: Column  # of a run, or of every stage if `over` is given
    rule: Rule
    name: str = ""  # if runs have several, the label of its part ends with it
    _: KW_ONLY
    less: str = ""  # a path that is subtracted
    needs: str = ""  # a path without which a run has no number
    # Reduces the numbers of the stages after the code, or from the code on.
    over: Callable[[list[float]], Any] | None = None
    from_code: bool = False
    net: bool = False  # the same of the untrained network is subtracted
    across: Callable[..., Any] | None = None  # combines compared settings
    decides: bool = True  # counts for the claim; else it only supports it
    is_new: bool = False  # counts where runs have it: earlier versions lack it
    limits: Limits | None = None  # by default of the score or measure
    by: estimates.Estimator = estimates.estimate_mean  # from its values by seed

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
        return self.by is estimates.estimate_share

    def read(self, groups: Sequence[Group]) -> estimates.Values:
        """Returns the number of the groups at every seed that all have."""
        tables = []
        for group in groups:
            table = self._read(group, END)
            if self.net:
                start = self._read(group, START)
                table = {s: minus(n, start[s]) for s, n in table.items()}
            tables.append(table)
        across = self.across or (lambda value: value)
        values = {}
        for seed in tables[0]:
            if all(seed in table for table in tables):
                numbers = [table[seed] for table in tables]
                values[seed] = None if None in numbers else across(*numbers)
        return values

    def _read(self, group: Group, when: str) -> dict[int, Any]:
        column, over = self.column, self.over
        if isinstance(column, str) and not (self.less or self.needs):
            seeds, rows = group.seeds, self._list_rows(group, column, when)
        else:
            table = self._make_table(group, when)
            first = int(CODE in table and not self.from_code)
            numbers = table.to_numpy()
            kept = numbers[:, first:] if over else numbers[:, None]
            seeds, rows = list(table.index), kept.tolist()
        pick = over or itemgetter(0)
        return {
            seed: pick(row) if row and not any(map(math.isnan, row)) else None
            for seed, row in zip(seeds, rows, strict=True)
        }

    def _list_rows(
        self, group: Group, path: str, when: str
    ) -> list[list[float]]:
        """Returns a recorded number of every run, or of its stages."""
        stages = group.columns.get((when, path), {})
        names = [""]
        if self.over:
            left_out = ("",) if self.from_code else ("", CODE)
            names = [name for name in stages if name not in left_out]
        columns = [stages.get(name, {}) for name in names]
        return [[c.get(s, math.nan) for c in columns] for s in group.runs]

    def _make_table(self, group: Group, when: str) -> Any:
        column = self.column
        if isinstance(column, Mapping):
            table: Any = find_met(group, column)
        elif callable(column):
            table = column(group, when)
        else:
            table = (group.get_stages if self.over else group.get)(column, when)
        if self.less:
            table = table - group.get(self.less, when)
        if self.needs:
            table = table.where(group.get(self.needs, when).notna())
        return table


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
    """A score that runs must have reached on trained (ID) combinations."""

    path: str
    rule: Rule

    def select(self, group: Group) -> tuple[Group, str]:
        """Returns the runs that count; how many, unless all do."""
        scores = zip(group.seeds, group.get(self.path), strict=True)
        fitted = group.keep([s for s, v in scores if self.rule.accepts(v)])
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
    """Runs that a test judges: one group, or several that are compared."""

    label: str
    groups: Sequence[Group]
    problem: str = ""  # why they prove nothing, though they pass their gates
    decides: bool = True


Runs = Mapping[str, Setting] | Callable[[Evidence], Iterable[Case]]


@dataclass(frozen=True)
class Check:
    """Numbers of the runs of some cases: of settings, or as found."""

    runs: Runs
    numbers: Sequence[Number]
    gates: Sequence[Gate] = (FITTED,)  # for all groups of a case, or for each

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
