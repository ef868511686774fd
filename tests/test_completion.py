"""What Tab offers, asked as a shell asks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.__main__ import COMMANDS
from tfcomp.completion import find_flags

# argcomplete answers on file descriptor 8; this is where it goes instead.
SCRIPT = """
import os, sys
os.dup2(1, 8)
from tfcomp.__main__ import main
main(["tfcomp"])
"""


def press_tab(line: str, folder: Path) -> list[str]:
    """The words that are offered at the end of a line."""
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | asked,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in result.stderr, result.stderr
    return [word.strip() for word in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tfcomp tr", {"train"}),
        ("tfcomp train smo", {"smoke"}),
        ("tfcomp train --learn", {"--learning_rate"}),
        ("tfcomp train --model hard", {"hard_rendering"}),
        ("tfcomp train smoke --encoding ra", {"ramp"}),
        ("tfcomp train --dataset gauss", {"gaussian_bumps"}),
        ("tfcomp train --polarity br", {"bright"}),
        ("tfcomp sweep sweep_en", {"sweep_encodings"}),
        ("tfcomp sweep --see", {"--seeds", "--seed"}),
        ("tfcomp analyze my", {"my_runs/"}),
        ("tfcomp compare --sco", {"--scores"}),
        ("tfcomp train --no_such", set()),
    ],
)
def test_tab(line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "my_runs").mkdir()
    assert set(press_tab(line, tmp_path)) == expected
    assert os.listdir(tmp_path) == ["my_runs"]


# A study has to be named before it has flags.
@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"study"}))
def test_every_command_says_its_flags(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert list(find_flags(command))
