"""What Tab offers: commands, flags, flagfiles, and names that flags take.

    eval "$(register-python-argcomplete tfcomp)"

in a shell, or in its start file, turns it on: the shell then calls the command
with the line so far in the environment. TensorFlow is not imported for that.
"""

import argparse
import importlib
import os
from collections.abc import Sequence

import argcomplete
from absl import flags
from argcomplete.completers import ChoicesCompleter, FilesCompleter

from tfcomp.config.command import COMPLETES, FlagsAsked
from tfcomp.config.errors import RunError
from tfcomp.config.flagfiles import SUFFIX, TARGETS, list_flagfiles
from tfcomp.config.run_config import all_fields


def complete(commands: Sequence[str]) -> None:
    """Answers the shell, and ends the process."""
    command = os.environ["COMP_LINE"].split()[1:2]
    parser = argparse.ArgumentParser("tfcomp", add_help=False)
    parser.add_argument("command", choices=commands)
    if command and command[0] in commands:
        add_flags(parser, find_flags(command[0]))
    argcomplete.autocomplete(parser, always_complete_options="long")


def find_flags(command: str) -> flags.FlagValues:
    """The flags of a command; none of one that asks for more before it has."""
    assert COMPLETES in os.environ
    try:
        importlib.import_module(f"tfcomp.{command}").main([command])
    except FlagsAsked as asked:
        return asked.values
    except RunError:
        pass
    return flags.FlagValues()


def add_flags(
    parser: argparse.ArgumentParser, values: flags.FlagValues
) -> None:
    """Adds the flags, and what the shell may offer after each of them."""
    choices: dict[str, Sequence[str]] = {}
    if "dataset" in values:  # the flags of a run
        from tfcomp.datasets.dataset import DATASETS
        from tfcomp.models import ENCODINGS, MODELS

        choices = {f.name: f.metadata["choices"] for f in all_fields()}
        choices |= {r.flag: r.names() for r in (DATASETS, MODELS, ENCODINGS)}
    for name in values:
        flag = values[name]
        how = {"action": "store_true"} if flag.boolean else {}
        added = parser.add_argument(f"--{name}", help=flag.help, **how)
        if found := choices.get(name):
            added.completer = ChoicesCompleter(found)
    files = parser.add_argument("--flagfile", help="Read flags from a file.")
    words = parser.add_argument("words", nargs="*")
    stems = [name.removesuffix(SUFFIX) for name in list_flagfiles(values)]
    for added in (files, words):
        added.completer = ChoicesCompleter(stems)
    if any(name in values for name in TARGETS):
        words.completer = FilesCompleter()
