"""Commands in pages and flagfiles are parsed, also where none runs them."""

import functools
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from absl import flags

from reproduction import FLAGFILES
from reproduction import command as campaign
from tests.docs.page_blocks import ROOT
from tfcomp.config import command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_flags import SHIPPED, parse_flags
from tfcomp.sweeps.grid import parse_grid

BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^\W*(?:\S*/)?(?:tfcomp |python -m tfcomp\.|(?=python -m reproduction\.))"
    r"(?:python -m )?([a-z].*)$"
)
# What follows the flags of a command, in a shell.
ENDS = {"|", "&&", ";", "&", ">", ">/dev/null", "2>&1", "2>/dev/null"}
# Of plugins and runs that a reader makes; tutorials are executed elsewhere.
NOT_HERE = ("$", "--plugins=", "/run.flags")


class FlagsAsked(Exception):
    """Carries the flags that a command would parse."""


@pytest.fixture(autouse=True)
def _asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(arguments: list[str], values: flags.FlagValues) -> None:
        raise FlagsAsked(values)

    used = vars(command.run_flags) | {"parse_flags": parse}
    monkeypatch.setattr(command, "run_flags", SimpleNamespace(**used))


def list_commands(source: Path) -> Iterator[list[str]]:
    """The words of each command in a block, after `tfcomp` or `python -m`."""
    text = source.read_text("utf-8")
    blocks = [text] if source.suffix == ".flags" else BLOCK.findall(text)
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        found = COMMAND.match(line)
        if found and not any(mark in line for mark in NOT_HERE):
            is_header = source.suffix == ".flags"
            words = shlex.split(found[1], comments=is_header)
            ends = [n for n, word in enumerate(words) if word in ENDS]
            yield words[: ends[0]] if ends else words


def find_flags(words: list[str]) -> tuple[flags.FlagValues, list[str]]:
    """The flags of a command, and the words that are to be parsed by them."""
    name, *rest = words
    if name.startswith("reproduction."):
        main = functools.partial(campaign.main, name.partition(".")[2])
    else:
        main = importlib.import_module(f"tfcomp.{name}").main
    with pytest.raises(FlagsAsked) as asked:
        main([*words, "--seed=0"])
    return asked.value.args[0], rest


def check_command(words: list[str]) -> dict[str, Any]:
    """Parses a command, and the grid of a sweep; nothing runs."""
    if "#" in words:
        raise RunError("zsh takes a comment for words of the command")
    values, rest = find_flags(words)
    if not words[0].startswith("reproduction."):
        for word in rest:
            if (FLAGFILES / f"{word.rpartition('=')[2]}.flags").exists():
                raise RunError(f"tfcomp needs the path of a flagfile: {word}")
    settings = parse_flags(rest, values)
    if (SHIPPED / f"{settings.get('runs')}.flags").exists():
        raise RunError(f"a flagfile is taken for runs: {rest}")
    parse_grid(settings.get("grid", []), settings.get("seeds", 1))
    return settings


def test_every_command_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
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
    packed = check_command(["reproduction.claims", "--pack=~"])
    assert packed["pack"] == str(Path.home())
