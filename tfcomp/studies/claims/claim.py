"""The classes that claims are declared with.

A `Number` names a number of runs, and its rule. A `Check` judges numbers of
the runs of some cases: of each setting, or of settings that are compared at
equal seeds.

    Check({"donut, bump": make_cnn("bump")}, [
        Number("F at the image less F at stage 0, net of the start",
               "factorization", below(-0.02), over=change, net=True)])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tfcomp.statistics.estimates import (
    Estimator,
    Values,
    estimate_mean,
    estimate_share,
    estimate_trend,
)
from tfcomp.statistics.limits import Limits
from tfcomp.statistics.verdicts import Rule, below
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.tables.flatten import END, START
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Arms, Setting

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

    def read(self, group: Group) -> dict[int, Any]:
        """Returns the number, or a list, by seed; None where it is missing."""
        found = self._read(group, END)
        if not self.net:
            return found
        start = self._read(group, START)
        return {seed: minus(v, start[seed]) for seed, v in found.items()}

    def read_all(self, groups: Sequence[Group]) -> Values:
        """Returns the number of the groups at every seed that all have."""
        tables = [self.read(group) for group in groups]
        across = self.across or (lambda value: value)
        values = {}
        for seed in tables[0]:
            if all(seed in table for table in tables):
                numbers = [table[seed] for table in tables]
                values[seed] = None if None in numbers else across(*numbers)
        return values

    def _read(self, group: Group, when: str) -> dict[int, Any]:
        column = self.column
        if isinstance(column, Mapping):
            return list_values(find_met(group, column))
        if callable(column):
            found = column(group, when)
        elif self.over:
            found = group.get_stages(column, when)
        else:
            found = group.get(column, when)
        if self.less:
            found = found - group.get(self.less, when)
        if self.needs:
            found = found.where(group.get(self.needs, when).notna())
        if self.over:
            return self._reduce(found)
        return list_values(found)

    def _reduce(self, stages: DataFrame) -> dict[int, Any]:
        over, first = self.over, 0 if self.from_code else int(CODE in stages)
        assert over is not None
        table = stages.iloc[:, first:]
        rows = zip(table.index, table.to_numpy().tolist(), strict=True)
        return {
            seed: over(row) if row and not any(map(math.isnan, row)) else None
            for seed, row in rows
        }


def list_values(numbers: Series) -> dict[int, float | None]:
    """Returns numbers by seed; None for NaN."""
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


def log_ratio(first: float, second: float) -> float | None:
    """Returns the decimal logarithm of one positive number over another."""
    return math.log10(first / second) if first > 0 and second > 0 else None


def collect(*numbers: float) -> list[float]:
    """Returns the numbers of several settings in their order."""
    return list(numbers)


def change(stages: list[float]) -> float:
    """Returns the last number less the first."""
    return stages[-1] - stages[0]


def change_hidden(stages: list[float]) -> float:
    """Returns the last number before the image less the first."""
    return change(stages[:-1])


def list_hidden(stages: list[float]) -> list[float]:
    """Returns the numbers of all stages but the image."""
    return stages[:-1]


def find_largest_fall(stages: list[float]) -> float | None:
    """Returns the most that a number falls from one stage to the next."""
    falls = (before - after for before, after in pairwise(stages))
    return max(falls, default=None)


def make_trend(
    words: str,
    column: Column,
    rule: Rule,
    over: Callable[[list[float]], list[float]] = list,
) -> Number:
    """Returns Page's test of a number net of the start, over the stages."""
    quantity = f"{words} net of the start, rank correlation with the stage"
    return Number(
        quantity, column, rule, "trend", over=over, net=True, by=estimate_trend
    )


def make_share(words: str, rules: Mapping[str, Rule]) -> Number:
    """Returns the share of seeds whose scores obey rules: above one half."""
    return Number(
        f"seeds with {words}", rules, Rule(low=0.5), by=estimate_share
    )


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
        if again := int((fitted.num_trainings > 1).sum()):
            words.append(f"{again} started again")
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


@dataclass(frozen=True)
class Versus:
    """Some arms, compared seed by seed; all are alike else."""

    label: str
    arms: Arms
    names: Sequence[str]

    def __call__(self, evidence: Evidence) -> list[Case]:
        found = self.arms.find(evidence.groups)
        first, *others = groups = [found[name] for name in self.names]
        problems = [self.arms.find_mismatch(first, other) for other in others]
        problem = next(filter(None, problems), "")
        return [Case(self.label, groups, problem)]


@dataclass(frozen=True)
class Check:
    """Numbers of the runs of some cases: of settings, or as found.

    `gates` has one gate for all groups of a case, or one for each.
    """

    cases: Mapping[str, Setting] | Callable[[Evidence], Iterable[Case]]
    numbers: Sequence[Number]
    gates: Sequence[Gate] = (FITTED,)

    def list_cases(self, evidence: Evidence) -> Iterable[Case]:
        """Returns the cases of some evidence."""
        if callable(self.cases):
            return self.cases(evidence)
        return [
            Case(label, [setting.find(evidence.groups)])
            for label, setting in self.cases.items()
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
