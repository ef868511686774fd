"""Runs the code blocks of a page in order and compares their output.

In the pages, a block of `bash` is run by a shell and one of `python` in one
interpreter for the page, all in one folder. With a title, as in

    ```python title="my_parts.py"

a block is written to a file of that name. A block of `text` shows what the
block before it printed; a line `...` stands for any number of lines. A block
below the comment `<!-- not run -->` is skipped.
"""

import contextlib
import io
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"(?P<skip><!-- not run -->\n)?^```(?P<language>bash|python|text)"
    r"(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# Of numbers that a page shows: trainings end alike on other machines, but for
# the last digits.
TOLERANCE = 0.05
# The installed command, for the code that is tested.
SHELL = f'tfcomp() {{ "{sys.executable}" -m tfcomp "$@"; }}\n'


@dataclass(frozen=True)
class Block:
    """A block that is run or compared, and the place of its body."""

    language: str
    title: str
    body: str
    span: tuple[int, int]


def list_blocks(page: str) -> Iterator[Block]:
    """Lists the blocks of a page that are run or compared."""
    for found in FENCE.finditer(page):
        if not found["skip"]:
            title = found["title"] or ""
            yield Block(
                found["language"], title, found["body"], found.span("body")
            )


class Reader:
    """Follows a page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def read(self, block: Block) -> None:
        """Runs a block, or writes it to its file."""
        if block.title:
            (self.folder / block.title).write_text(block.body, "utf-8")
        elif block.language == "bash":
            self.printed = self._run_shell(block.body)
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.body, "page", "exec"), self.names)
            self.printed = printed.getvalue()

    def _run_shell(self, script: str) -> str:
        binaries = str(Path(sys.executable).parent)
        variables = {
            "PATH": os.pathsep.join([binaries, os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.folder)]),
        }
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", SHELL + script],
            cwd=self.folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


def find_difference(shown: str, printed: str) -> str:
    """Describes how the output differs from a page; empty if it does not."""
    pattern, expected = "", []
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
            continue
        words = NUMBER.split(line.rstrip())
        escaped = [
            r"\s+".join(map(re.escape, re.split(r"\s+", w))) for w in words
        ]
        expected += [float(number) for number in NUMBER.findall(line)]
        pattern += f"({NUMBER.pattern})".join(escaped) + r"\s*\n"
    found = re.fullmatch(pattern, f"{printed.strip()}\n")
    if found is None:
        return f"shown:\n{shown}\nprinted:\n{printed}"
    wrong = [
        f"{number:g}, not {text}"
        for number, text in zip(expected, found.groups(), strict=True)
        if not math.isclose(number, float(text), rel_tol=TOLERANCE)
    ]
    return "; ".join(wrong)
