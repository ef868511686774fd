"""Names, flags and verdicts change on purpose alone (see `freeze.py`)."""

import csv
import difflib
from collections.abc import Iterable
from pathlib import Path

from tests.contract.freeze import TOP, list_flags, list_names

FROZEN = Path(__file__).with_name("frozen")
# `tests/reproduction/claims/test_evidence.py` holds that the committed evidence
# gives this table.
CLAIMS = TOP / "docs/tables/claims.csv"
PLACE = ("claim", "test", "part", "quantity")
NUMBERS = ("mean", "low", "high", "n")
WORDS = ("paper_verdict", "claim_verdict", "verdict")
HINT = "if this is on purpose: python tests/contract/freeze.py FOLDER, and copy"


def check_lines(name: str, found: Iterable[str]) -> None:
    """Compares lines with a frozen file."""
    frozen = (FROZEN / name).read_text("utf-8").splitlines()
    lines = difflib.ndiff(frozen, list(found))
    changed = [line for line in lines if line.startswith(("- ", "+ "))]
    text = "\n".join(changed)
    assert not changed, f"{text}\n{HINT} FOLDER/{name} to {FROZEN}"


def test_public_names_and_signatures_are_the_frozen_ones() -> None:
    check_lines("names.txt", list_names())


def test_flags_and_defaults_are_the_frozen_ones() -> None:
    check_lines("flags.txt", list_flags())


def read_verdicts(path: Path) -> dict[tuple[str, ...], list[object]]:
    """Numbers and verdicts of each part of a claim."""
    parts: dict[tuple[str, ...], list[object]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = [float(row[name] or "nan") for name in NUMBERS]
            place = tuple(row[name] for name in PLACE)
            assert place not in parts
            # Texts, since a number that is missing is not equal to itself.
            parts[place] = [*map(repr, numbers), *(row[n] for n in WORDS)]
    return parts


def test_verdicts_and_their_numbers_are_the_frozen_ones() -> None:
    frozen = read_verdicts(FROZEN / "verdicts.csv")
    found = read_verdicts(CLAIMS)
    changed = [
        f"{' | '.join(place)}: {frozen.get(place)} -> {found.get(place)}"
        for place in frozen | found
        if frozen.get(place) != found.get(place)
    ]
    text = "\n".join(changed)
    file = "FOLDER/verdicts.csv"
    assert not changed, f"{text}\n{HINT} {file} to {FROZEN} and {CLAIMS}"
