"""Commands in pages and flagfiles are parsed, also where none runs them."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from absl import flags

from reproduction import FLAGFILES
from tests.docs.page_blocks import ROOT, split_command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import SHIPPED, parse_flags
from tfcomp.sweeps.grid import parse_grid

BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^\W*(?:\S*/)?(?:tfcomp |python -m tfcomp\.|(?=python -m reproduction\.))"
    r"(?:python -m )?([a-z].*)$"
)
# Of plugins and runs that a reader makes; tutorials are executed elsewhere.
NOT_HERE = ("$", "--plugins=", "/run.flags")


def list_commands(source: Path) -> Iterator[list[str]]:
    """The words of each command in a block, after `tfcomp` or `python -m`."""
    text = source.read_text("utf-8")
    is_flagfile = source.suffix == ".flags"
    if not is_flagfile:
        text = "\n".join(BLOCK.findall(text))
    for line in text.replace("\\\n", " ").splitlines():
        command = COMMAND.match(line)
        if command is None or any(mark in line for mark in NOT_HERE):
            continue
        yield split_command(command[1], comments=is_flagfile)


def find_flags(name: str, words: list[str]) -> flags.FlagValues:
    """The flags of a command."""
    if not name.startswith("reproduction."):
        return importlib.import_module(f"tfcomp.{name}").main.define_flags()

    module = name
    if name != "reproduction.packing":
        module = f"{name}.command"
    return importlib.import_module(module).main.define_flags()


def check_command(words: list[str]) -> dict[str, Any]:
    """Parses a command, and the grid of a sweep; nothing runs."""
    if "#" in words:
        raise RunError("zsh takes a comment for words of the command")
    name, *rest = words
    values = find_flags(name, rest)
    if not words[0].startswith("reproduction."):
        for word in rest:
            if (FLAGFILES / f"{word.rpartition('=')[2]}.flags").exists():
                raise RunError(f"tfcomp needs the path of a flagfile: {word}")
    settings = parse_flags(rest, values)
    if (SHIPPED / f"{settings.get('runs')}.flags").exists():
        raise RunError(f"a flagfile is taken for runs: {rest}")
    parse_grid(settings.get("grid", []), settings.get("seeds", 1))
    return settings


def test_every_command_can_be_typed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)  # of a clone, where readers type them
    count, wrong = 0, []
    sources = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    flagfiles = [*SHIPPED.rglob("*.flags"), *FLAGFILES.rglob("*.flags")]
    for source in [*sources, *flagfiles]:
        for words in list_commands(source):
            if "--help" in words:
                continue
            count += 1
            try:
                check_command(words)
            except (ConfigError, RunError) as error:
                wrong.append(f"{source.name}: {shlex.join(words)}: {error}")
    assert wrong == []
    assert count > 100
    packed = check_command(["reproduction.packing", "--output=~"])
    assert packed["output"] == str(Path.home())
