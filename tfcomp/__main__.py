"""All commands under one name: `tfcomp train` is `python -m tfcomp.train`."""

import importlib
from pathlib import Path

from tfcomp import __version__
from tfcomp.config import command
from tfcomp.config.errors import RunError, suggest

COMMANDS = "train analyze compare sweep solvable embeddings export".split()
# Commands of earlier versions, and what to type in their place.
FORMER = {
    "measure": "tfcomp analyze RUNS --measure",
    "materialize": "tfcomp train NAME --materialize --examples_dir=FOLDER",
}


def main(argv: list[str]) -> int:
    """Lists the commands, or calls one; returns its exit status."""
    name, *rest = argv[1:] or ["--help"]
    if name == "--version":
        print(f"tfcomp {__version__}")
        return 0
    if name in command.HELP:
        for entry in COMMANDS:
            file = Path(__file__).with_name(f"{entry}.py")
            print(f"tfcomp {entry:14}{command.read_purpose(file)}")
        print("\nTry first: tfcomp train smoke")
        return 0
    if name in FORMER:
        raise RunError(f"{name!r} is now: {FORMER[name]}")
    if name not in COMMANDS:
        hint = suggest(name, COMMANDS) or " (see --help)"
        raise RunError(f"{name!r} is not a command{hint}")
    module = importlib.import_module(f"tfcomp.{name}")
    return module.main([f"tfcomp {name}", *rest])


def run() -> None:
    """The entry point of the installed command."""
    command.exit_on_user_error(main)


if __name__ == "__main__":
    run()
