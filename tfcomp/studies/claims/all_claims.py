"""The claims that `claims.toml` declares, and their verdicts."""

from collections.abc import Iterator, Mapping
from typing import Any

from tfcomp.statistics.limits import Limits
from tfcomp.statistics.verdicts import Rule, above, below
from tfcomp.studies.claims.cases import RUNS
from tfcomp.studies.claims.claim import (
    FITTED,
    PLACED,
    Check,
    Declaration,
    Number,
    OwnCheck,
)
from tfcomp.studies.claims.columns import ACROSS, BY, COLUMNS, OVER
from tfcomp.studies.claims.controls import Control, Kind, read_declarations
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.studies.claims.judgement import Claim, ClaimResult
from tfcomp.studies.claims.own_checks import OWN_CHECKS

GATES = {"fitted": FITTED, "placed": PLACED}


def _read_claim(name: str) -> Claim:
    """Makes a claim; its test, numbers and controls are tables of their own."""
    declared = read_declarations()[name]
    texts = declared.keys() - {*Kind, "tests", "numbers"}
    tests = dict(declared["tests"])
    gates = tests.pop("gates", ["fitted"])
    return Claim(
        name,
        **{text: _join(declared[text]) for text in texts},
        tests=Declaration(
            **{
                column: [_read_check(name, check, gates) for check in checks]
                for column, checks in tests.items()
            }
        ),
        controls=[
            Control(title, kind, planted)
            for kind in Kind  # the positive ones first
            for title, planted in declared.get(kind, {}).items()
        ],
    )


def _join(value: Any) -> Any:
    """Removes line breaks from texts, at any depth."""
    if isinstance(value, dict):
        return {k: _join(v) for k, v in value.items()}
    if isinstance(value, list):
        return list(map(_join, value))
    return " ".join(value.split()) if isinstance(value, str) else value


def _read_check(
    claim: str, declared: str | Mapping[str, Any], gates: list[str]
) -> Check | OwnCheck:
    if isinstance(declared, str):
        return OWN_CHECKS[declared]
    chosen = [GATES[gate] for gate in declared.get("gates", gates)]
    return Check(
        RUNS[declared["runs"]], list(_read_numbers(claim, declared)), chosen
    )


def _read_numbers(claim: str, check: Mapping[str, Any]) -> Iterator[Number]:
    """Yields the numbers of a check; one of another claim is `C1.error`."""
    names = check["numbers"]
    if names == "all":
        names = read_declarations()[claim]["numbers"]
    for name in names:
        fields = _find_number(claim, name)
        if ending := check.get("ending", ""):
            for path in {"column", "less"} & fields.keys():
                fields[path] += ending
        yield _make_number(fields)


def _find_number(claim: str, name: str) -> dict[str, Any]:
    """Returns the fields of a number, over those of the one it is `like`."""
    if name.partition(".")[0] in read_declarations():
        claim, _, name = name.partition(".")
    fields = dict(read_declarations()[claim]["numbers"][name])
    like = fields.pop("like", "")
    return (_find_number(claim, like) if like else {}) | fields


def _make_number(fields: dict[str, Any]) -> Number:
    """Makes a number; functions are named as in `columns`."""
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
