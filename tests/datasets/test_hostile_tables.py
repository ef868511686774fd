"""Damaged tables: taken, or refused in one line, soon and in little memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# What Python says of a mistake in our own code.
SLIPS = (
    "no attribute",
    "unsized",
    "ufunc",
    "not iterable",
    "unhashable",
    "index out",
)
SCRIPT = Path(__file__).with_name("hostile_tables.py")


@pytest.mark.parametrize(
    ("number", "seed"),
    [
        (40, 0),
        pytest.param(600, 0, marks=pytest.mark.slow),
        pytest.param(150, 4747, marks=pytest.mark.slow),
    ],
)
def test_every_table_is_answered(
    number: int, seed: int, tmp_path: Path
) -> None:
    command = [sys.executable, SCRIPT, tmp_path, str(number), str(seed)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    answers = json.loads(found.stdout)
    statuses = [answer["status"] for answer in answers]
    assert len(answers) == number
    # Neither is everything refused, nor is nothing wrong with the tables.
    assert statuses.count(0) > number / 20 and statuses.count(2) > number / 3
    assert [answer for answer in answers if not is_right(**answer)] == []


def is_right(table: str, status: int, said: str) -> bool:
    if status == 0:
        return not said
    is_one_line = said.startswith("--data") and said.count("\n") == 1
    is_ours = any(slip in said for slip in SLIPS)
    is_shown = said[:-1].isprintable()
    return status == 2 and is_one_line and is_shown and not is_ours
