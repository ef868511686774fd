"""Tasks of tests that a pool runs, and a program that has a pool."""

import subprocess
import sys
from pathlib import Path

from tfcomp.sweeps.scheduling import Task

SCRIPT = Path(__file__).with_name("pool_script.py")


def python(name: str, folder: Path, code: str) -> Task:
    return Task(name, [sys.executable, "-c", code], folder / f"{name}.log")


def read_pids(folder: Path) -> list[int]:
    text = "".join(path.read_text() for path in folder.glob("*.log"))
    return [int(word) for word in text.split()]


def start_script(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
