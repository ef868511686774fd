"""Parts of a claim: one number of one setting each, judged by one rule."""

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reproduction import verdicts
from reproduction.claims.claim import Case, Check, Checks, Gate, Number
from reproduction.claims.evidence import FIRST, FRESH, Evidence
from reproduction.groups import Group
from reproduction.verdicts import Rule, Verdict
from tfcomp.metrics.registry import find_limits
from tfcomp.statistics.estimates import Estimate
from tfcomp.statistics.limits import REAL
from tfcomp.statistics.seed_statistics import adjust_by_holm
from tfcomp.tables.flatten import END, MEASURED

# Fewer fitted runs than this share of those that were tried prove nothing.
MIN_FITTED = 0.5
# Runs of two seeds are copies if this many numbers are equal.
MIN_EQUAL = 40
MIXED = "measured by several versions of the code: run tfcomp measure"


@dataclass(frozen=True)
class Part:
    """One number of a claim, judged by one rule.

    Attributes:
        label: The runs, as `donut, bump`.
        quantity: The number in words, with its unit.
        estimate: The number; None if there is none.
        groups: The runs behind it, one group for each setting.
        note: What else is to be said.
        fitted: How many runs are fitted, as `4 of 5 fitted`, if not all are.
        problem: Why the runs prove nothing, whatever the number.
        decides: Whether it counts for the claim, or only supports it.
        is_awaited: True if it counts once runs have the number.
        of: The setting that it belongs to.
        num_runs: How many runs of it there are, fitted or not.
        round: The round of its seeds, as in `evidence`.
    """

    label: str
    quantity: str
    estimate: Estimate | None
    rule: Rule
    groups: Sequence[Group] = ()
    note: str = ""
    fitted: str = ""
    problem: str = ""
    decides: bool = True
    is_awaited: bool = False
    of: str = ""
    num_runs: int = 0
    round: int = FIRST

    @property
    def is_fresh(self) -> bool:
        """True if no rule of its version was written on its seeds."""
        return self.round >= FRESH

    @property
    def verdict(self) -> Verdict:
        """The verdict of the rule on the number."""
        return self._judgement[0]

    @property
    def reason(self) -> str:
        """The reason of the verdict, if it needs one."""
        return self._judgement[1]

    @property
    def has_enough(self) -> bool:
        """True if there are enough seeds to decide anything."""
        return bool(self.estimate and self.estimate.count >= verdicts.MIN_SEEDS)

    @property
    def differences(self) -> tuple[str, ...]:
        """Flags that are not as published, and notes."""
        found = [d for group in self.groups for d in group.differences]
        notes = filter(None, [self.note, self.fitted])
        return tuple(dict.fromkeys([*found, *notes]))

    @functools.cached_property
    def _judgement(self) -> tuple[Verdict, str]:
        if self.is_awaited:
            return Verdict.NOT_RUN, "not run yet"
        if self.estimate is None and self.num_runs:
            reason = self.problem or "the runs lack this number"
            return Verdict.UNDECIDED, reason
        if self.problem and self.has_enough:
            return Verdict.UNDECIDED, self.problem
        return verdicts.judge(self.estimate, self.rule)


def judge_checks(checks: Checks, evidence: Evidence) -> list[Part]:
    """Judges all numbers of all cases; refutations are corrected by Holm."""
    parts: list[Part] = []
    for check in checks:
        if not isinstance(check, Check):
            parts += check(evidence)
            continue
        for case in check.list_cases(evidence):
            parts += measure(case, check.numbers, check.gates)
    return correct_refutations(parts)


def measure(
    case: Case, numbers: Sequence[Number], gates: Sequence[Gate]
) -> list[Part]:
    """Judges numbers of the same runs, a part for each number."""
    tried = case.groups
    each = [*gates] * (len(tried) if len(gates) == 1 else 1)
    pairs = [gate.select(g) for gate, g in zip(each, tried, strict=False)]
    groups = [group for group, _ in pairs] or tried
    fitted = ", ".join(note for _, note in pairs if note)
    sizes = zip(map(len, groups), map(len, tried), strict=True)
    is_unfitted = any(kept < MIN_FITTED * count for kept, count in sizes)
    unfitted = f"not fitted: {fitted}" if is_unfitted else ""
    runs = (run for group in groups for run in group.runs.values())
    is_mixed = len({run[MEASURED] for run in runs if run[MEASURED]}) > 1
    problem = case.problem or find_copies(tried)
    estimates = [_estimate(number, groups, tried) for number in numbers]
    return [
        Part(
            f"{case.label}, {number.name}" if number.name else case.label,
            number.quantity,
            estimate,
            number.rule,
            groups,
            fitted=fitted,
            problem=problem
            or ("" if number.is_share else unfitted)
            or (MIXED if is_mixed and number.is_measured else ""),
            decides=case.decides and number.decides and not is_awaited,
            is_awaited=is_awaited,
            of=case.label,
            num_runs=min(map(len, tried)),
        )
        for number, estimate in zip(numbers, estimates, strict=True)
        for is_awaited in [number.is_new and estimate is None]
    ]


def _estimate(
    number: Number, groups: Sequence[Group], tried: Sequence[Group]
) -> Estimate | None:
    """Estimates a number over the seeds that all groups have."""
    limits, values = number.limits, number.read(groups)
    if limits is None:
        changed = number.less or number.over or number.net or number.across
        is_plain = isinstance(number.column, str) and not changed
        limits = find_limits(str(number.column)) if is_plain else REAL
    if number.is_share:  # runs that are not fitted failed
        (group,) = tried
        values = {**dict.fromkeys(group.seeds, 0.0), **values}
    return number.by(values, limits)


def find_copies(groups: Iterable[Group]) -> str:
    """Returns a problem if runs of different seeds have the same numbers."""
    for group in groups:
        tables = [
            values
            for (when, path), stages in group.columns.items()
            for values in stages.values()
            if when == END and not path.startswith("train/")
        ]
        seen: dict[tuple[float, ...], int] = {}
        for seed in group.seeds:
            found = (table[seed] for table in tables if seed in table)
            numbers = tuple(itertools.islice(found, MIN_EQUAL))
            if len(numbers) == MIN_EQUAL and numbers in seen:
                return f"seeds {seen[numbers]} and {seed} are the same run"
            seen[numbers] = seed
    return ""


def correct_refutations(parts: Sequence[Part]) -> list[Part]:
    """Leaves a part undecided if Holm's correction saves it from refutation."""
    tests: dict[int, float | None] = {}  # of all that decide and were judged
    for place, part in enumerate(parts):
        if part.decides and part.estimate and not part.problem:
            tests[place] = 1.0
            if part.verdict is Verdict.REFUTED:
                tests[place] = part.rule.compute_refutation_p(part.estimate)
    corrected = list(parts)
    adjusted = adjust_by_holm([*tests.values()])
    for (place, p), p_holm in zip(tests.items(), adjusted, strict=True):
        is_refuted = parts[place].verdict is Verdict.REFUTED
        if is_refuted and (p_holm or 0.0) >= verdicts.SIGNIFICANT:
            words = f"refuted but for Holm's correction (p = {p:.2g})"
            corrected[place] = replace(parts[place], problem=words)
    return corrected


def combine_parts(parts: Iterable[Part]) -> tuple[Verdict, str]:
    """Returns the verdict on a claim that its deciding parts must support."""
    return verdicts.combine([p.verdict for p in parts if p.decides])
