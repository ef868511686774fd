"""The claims that `claims.toml` declares, and their verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from reproduction.claims import claim
from reproduction.claims.cases import RUNS
from reproduction.claims.claim import Check, Number, OwnCheck
from reproduction.claims.controls import Control, Kind, read_declarations
from reproduction.claims.evidence import Evidence
from reproduction.claims.judgement import Claim, ClaimResult
from reproduction.claims.own_checks import OWN_CHECKS, read_deviation
from reproduction.groups import Group
from reproduction.verdicts import Rule, above, below
from tfcomp.statistics import estimates
from tfcomp.statistics.limits import Limits

if TYPE_CHECKING:
    from pandas import Series

GATES = {"fitted": claim.FITTED, "placed": claim.PLACED}
APART = 5.0  # axes of a factor whose profiles differ by more are told apart
# As C22 has it.
COMPOSES = {
    "ood/position_accuracy": above(0.99),
    "ood/relative_mse": below(0.02),
}


def is_sign_right(group: Group, when: str) -> Series:
    """Returns 1 for runs whose axes are apart just if they succeed, else 0."""
    apart = group.get("axis_ratio", when)
    good = claim.find_met(group, COMPOSES)
    is_known = apart.notna() & good.notna()
    return ((apart > APART) == (good > 0)).astype(float).where(is_known)


COLUMNS: dict[str, Callable[[Group, str], Any]] = {
    "axes tell success": is_sign_right,
    "deviation, OOD less ID": read_deviation,
}
# Of the numbers of the stages; the image is the last of them.
OVER: dict[str, Callable[[list[float]], Any]] = {
    "all": list,
    "hidden": lambda stages: stages[:-1],
    "last": lambda stages: stages[-1],
    "largest": max,
    "largest fall": lambda s: max(
        (a - b for a, b in pairwise(s)), default=None
    ),
    "mean": fmean,
    "mean of later half": lambda stages: fmean(stages[len(stages) // 2 :]),
    "change": lambda stages: stages[-1] - stages[0],
    "change of hidden": lambda stages: stages[-2] - stages[0],
}
ACROSS: dict[str, Callable[..., Any]] = {
    "all": lambda *numbers: list(numbers),
    "difference": claim.minus,
    "log10 of ratio": lambda a, b: math.log10(a / b) if a > 0 < b else None,
}
TESTS = {"ours": "tests", "paper": "paper_tests", "unseen": "unseen_tests"}
BY: dict[str, estimates.Estimator] = {
    "fact": estimates.estimate_fact,
    "geometric": estimates.estimate_geometric,
    "share": estimates.estimate_share,
    "trend": estimates.estimate_trend,
}


def _read_claim(name: str) -> Claim:
    """Makes a claim; its test, numbers and controls are tables of their own."""
    declared = read_declarations()[name]
    texts = declared.keys() - {*Kind, "tests", "numbers"}
    tests = dict(declared["tests"])
    gates = tests.pop("gates", ["fitted"])
    fields = {text: _join(declared[text]) for text in texts}
    for column, checks in tests.items():
        read = [_read_check(name, check, gates) for check in checks]
        fields[TESTS[column]] = read
    fields["controls"] = [
        Control(title, kind, planted)
        for kind in Kind  # the positive ones first
        for title, planted in declared.get(kind, {}).items()
    ]
    return Claim(name, **fields)


def _join(value: Any) -> Any:
    """Removes line breaks from texts, at any depth."""
    if isinstance(value, dict):
        return {k: _join(v) for k, v in value.items()}
    if isinstance(value, list):
        return list(map(_join, value))
    return " ".join(value.split()) if isinstance(value, str) else value


def _read_check(
    owner: str, declared: str | Mapping[str, Any], gates: list[str]
) -> Check | OwnCheck:
    if isinstance(declared, str):
        return OWN_CHECKS[declared]
    names, ending = declared["numbers"], declared.get("ending", "")
    if names == "all":
        names = read_declarations()[owner]["numbers"]
    numbers = [_make_number(_find_number(owner, n), ending) for n in names]
    chosen = [GATES[gate] for gate in declared.get("gates", gates)]
    return Check(RUNS[declared["runs"]], numbers, chosen)


def _find_number(owner: str, name: str) -> dict[str, Any]:
    """Returns its fields, over the fields of the one (as `C1.error`) `like`."""
    if name.partition(".")[0] in read_declarations():
        owner, _, name = name.partition(".")
    fields = dict(read_declarations()[owner]["numbers"][name])
    like = fields.pop("like", "")
    return (_find_number(owner, like) if like else {}) | fields


def _make_number(fields: dict[str, Any], ending: str) -> Number:
    """Makes a number; functions are named as above."""
    if ending:
        for path in {"column", "less"} & fields.keys():
            fields[path] += ending
    fields["quantity"] = _join(fields["quantity"])
    fields["rule"] = _parse_rule(fields["rule"])
    column = fields["column"]
    if isinstance(column, Mapping):
        fields["column"] = {k: _parse_rule(v) for k, v in column.items()}
    else:
        fields["column"] = COLUMNS.get(column, column)
    if "limits" in fields:
        fields["limits"] = Limits(*fields["limits"])
    for field, functions in (("over", OVER), ("across", ACROSS), ("by", BY)):
        if field in fields:
            fields[field] = functions[fields[field]]
    return Number(**fields)


def _parse_rule(text: str) -> Rule:
    """Parses `> 0.5` or `< 0.5`."""
    sign, bound = text.split()
    return {">": above, "<": below}[sign](float(bound))


CLAIMS = tuple(
    _read_claim(name)
    for name in read_declarations()
    if name not in ("versions", "settings")
)


def judge(evidence: Evidence) -> list[ClaimResult]:
    """Judges every claim, with its controls; see `judgement`."""
    return [claim.judge(evidence) for claim in CLAIMS]
