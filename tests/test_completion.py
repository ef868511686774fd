"""What Tab offers, asked as a shell asks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfcomp.__main__ import COMMANDS
from tfcomp.completion import find_flags

# argcomplete answers on file descriptor 8, and ends its process: each line has
# one, a fork of a single interpreter.
SCRIPT = """
import json, os, sys
import tfcomp.completion
from tfcomp.__main__ import main
for line, answer in json.load(sys.stdin).items():
    child = os.fork()
    if not child:
        os.dup2(os.open(answer, os.O_CREAT | os.O_WRONLY), 8)
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
        main(["tfcomp"])
    os.waitpid(child, 0)
"""
OFFERED = {
    "tfcomp tr": {"train"},
    "tfcomp train smo": {"smoke"},
    "tfcomp train --learn": {"--learning_rate"},
    "tfcomp train --model hard": {"hard_rendering"},
    "tfcomp train smoke --encoding ra": {"ramp"},
    "tfcomp train --dataset gauss": {"gaussian_bumps"},
    "tfcomp train --polarity br": {"bright"},
    "tfcomp sweep sweep_en": {"sweep_encodings"},
    "tfcomp sweep --see": {"--seeds", "--seed"},
    "tfcomp analyze my": {"my_runs/"},
    "tfcomp compare --sco": {"--scores"},
    "tfcomp train --no_such": set(),
}


def test_tab(tmp_path: Path) -> None:
    """The words that are offered at the end of every line."""
    here = tmp_path / "here"
    (here / "my_runs").mkdir(parents=True)
    files = {line: tmp_path / str(n) for n, line in enumerate(OFFERED)}
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps({line: str(path) for line, path in files.items()}),
        env=os.environ | asked,
        cwd=here,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in result.stderr, result.stderr
    found = {
        line: {word.strip() for word in path.read_text().splitlines()}
        for line, path in files.items()
    }
    assert found == OFFERED
    assert os.listdir(here) == ["my_runs"]


# A study has to be named before it has flags.
@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"study"}))
def test_every_command_says_its_flags(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert list(find_flags(command))
