"""Hostile command lines: one line each, status 2, and nothing written."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.hostile_lines import COMMANDS

SCRIPT = Path(__file__).with_name("hostile_lines.py")


@pytest.mark.parametrize(
    "number", [40, pytest.param(600, marks=pytest.mark.slow)]
)
def test_every_line_is_answered(number: int, tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, tmp_path, str(number), "0"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    answers = json.loads(found.stdout)
    assert len(answers) == number
    good = answers[: len(COMMANDS)]
    refused = [a for a in good if a["status"] not in ("begun", 0)]
    assert refused == []
    statuses = [answer["status"] for answer in answers]
    assert statuses.count(2) > number / 3
    wrong = [answer for answer in answers if not is_right(**answer)]
    assert wrong == []


def is_right(line: list[str], status: object, said: str, written: list) -> bool:
    if status in ("begun", 0):  # what was asked for can be done
        return True
    is_one_line = said.startswith("error: ") and said.count("\n") == 1
    return status in (1, 2) and is_one_line and not written
