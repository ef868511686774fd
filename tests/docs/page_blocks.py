"""Runs the code blocks of a page in order and compares their output.

In the pages, a block of `bash` is run by a shell, line by line, and one of
`python` in one interpreter for the page, all in one folder. With a title, as in

    ```python title="my_parts.py"

a block is written to a file of that name. A block of `text` shows what the
block before it printed; a line `...` stands for any number of lines. A block
below the comment `<!-- not run -->` is skipped.
"""

import contextlib
import importlib
import io
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import forget_plugins
from tfcomp import __main__

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
# What stands behind the words of a command in a line of a shell.
ENDS = {"|", "&&", ";", "&", ">", ">/dev/null", "2>&1", "2>/dev/null"}
# Stands for a command that has been called already.
REPEAT = """\
tfcomp() {
    cat "$CALLED/printed"
    cat "$CALLED/complaint" >&2
    return "$(cat "$CALLED/status")"
}
"""


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


def split_command(line: str, comments: bool = False) -> list[str]:
    """Splits a line of a shell; returns the words of its first command."""
    words = shlex.split(line, comments)
    for place, word in enumerate(words):
        if word in ENDS:
            return words[:place]
    return words


class Reader:
    """Follows a page in a folder, in which this process works.

    Commands of tfcomp are called in this process, which has imported
    TensorFlow, and the shell gets what they print.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def read(self, block: Block):
        """Runs a block, or writes it to its file."""
        if block.title:
            (self.folder / block.title).write_text(block.body, "utf-8")
        elif block.language == "bash":
            script = re.sub(r"\\\n", " ", block.body)
            script = re.sub(r"\|\n", "|", script)
            self.printed = "".join(map(self._run_line, script.splitlines()))
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.body, "page", "exec"), self.names)
            self.printed = printed.getvalue()

    def _run_line(self, line: str) -> str:
        """Runs a line of a shell, and returns what it prints."""
        with tempfile.TemporaryDirectory() as called:
            command = split_command(line)
            if command[:1] == ["tfcomp"]:
                self._call(command, Path(called))
            paths = [str(ROOT), str(self.folder)]
            binaries = [str(Path(sys.executable).parent), os.environ["PATH"]]
            variables = {
                "CALLED": called,
                "PATH": os.pathsep.join(binaries),
                "PYTHONPATH": os.pathsep.join(paths),
            }
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", REPEAT + line],
                env=os.environ | variables,
                capture_output=True,
                text=True,
            )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def _call(self, command: list[str], called: Path):
        """Calls a command, as if its process had just started.

        Args:
            command: Its words.
            called: The folder for what it prints, and for its status.
        """
        import keras

        forget_plugins(self.folder)
        importlib.invalidate_caches()
        keras.backend.clear_session()
        with (
            pytest.MonkeyPatch.context() as patch,
            open(called / "printed", "w", encoding="utf-8") as printed,
            open(called / "complaint", "w", encoding="utf-8") as complaint,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(complaint),
            pytest.raises(SystemExit) as end,
        ):
            patch.setattr(sys, "argv", command)
            __main__.run()
        (called / "status").write_text(str(end.value.code))


def find_difference(shown: str, printed: str) -> str:
    """Describes how the output differs from a page; empty if it does not."""
    pattern = ""
    expected: list[float] = []
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
            continue
        numbers = NUMBER.findall(line)
        expected += map(float, numbers)
        words = [_match_text(text) for text in NUMBER.split(line.rstrip())]
        pattern += f"({NUMBER.pattern})".join(words) + r"\s*\n"

    match = re.fullmatch(pattern, f"{printed.strip()}\n")
    if match is None:
        return f"shown:\n{shown}\nprinted:\n{printed}"
    wrong = []
    for number, text in zip(expected, match.groups(), strict=True):
        if not math.isclose(number, float(text), rel_tol=TOLERANCE):
            wrong.append(f"{number:g}, not {text}")
    return "; ".join(wrong)


def _match_text(text: str) -> str:
    """A pattern of a text, with any spaces in place of its spaces."""
    words = re.split(r"\s+", text)
    return r"\s+".join(map(re.escape, words))
