"""No sentence of a page says of a claim what its badge denies."""

import csv
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
# The history tells what verdicts were, and the plan what they may become.
PAGES = sorted(
    path
    for path in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
    if path.name != "package_page.md"
)
WORDS = {
    "reproduced": "reproduced",
    "refuted": "refuted",
    "undecided": "undecided",
    "open": "undecided",
    "not valid": "test not valid",
}
VERDICT = re.compile(rf"\b({'|'.join(WORDS)})\b")
CLAIM = re.compile(r"\bC\d+\b")


def read_verdicts() -> dict[str, set[str]]:
    """Verdicts of each claim as a whole, and of its parts that decide."""
    found: dict[str, set[str]] = {}
    with open(DOCS / "tables/claims.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = found.setdefault(row["claim"], set())
            known |= {row["paper_verdict"], row["claim_verdict"]}
            verdicts = row["claim_verdict"], row["paper_verdict"]
            has_parts = "in parts" in verdicts or row["claim"] in ("C10", "C16")
            if has_parts and row["decides"] == "True":
                known.add(row["verdict"])
    return found


def list_sentences(text: str) -> list[str]:
    """The sentences of a page outside of its tables and code."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    blocks = re.split(r"\n\s*\n|\n(?=[-#*] )", "\n".join(lines))
    return [
        " ".join(sentence.split())
        for block in blocks
        for sentence in re.split(r"(?<=[.:;])\s+(?=[A-Z*`])", block)
    ]


def find_denials(text: str, verdicts: dict[str, set[str]]) -> list[str]:
    return [
        sentence
        for sentence in list_sentences(text)
        for claims in [CLAIM.findall(sentence)]
        if claims
        and (words := VERDICT.findall(sentence))
        # Each claim has one of the words, and each word belongs to a claim.
        and (
            any(
                {WORDS[w] for w in words}.isdisjoint(verdicts[c])
                for c in claims
            )
            or any(
                all(WORDS[w] not in verdicts[c] for c in claims) for w in words
            )
        )
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_denies_a_badge(page: Path) -> None:
    assert find_denials(page.read_text("utf-8"), read_verdicts()) == []


def test_a_denial_is_found() -> None:
    verdicts = {"C1": {"reproduced"}, "C2": {"refuted", "undecided"}}
    good = "- C1 is reproduced. C2 is\nopen.\n\n| C1 | refuted |\n"
    assert find_denials(good, verdicts) == []
    for bad in ("C1 is refuted.", "C1 and C2: reproduced.", "C2 is not valid."):
        assert find_denials(f"- {good}\n{bad}", verdicts) == [bad], bad
