"""All commands under one name: `tfcomp train` is `python -m tfcomp.train`."""

import importlib

from tfcomp import __version__
from tfcomp.config.errors import RunError, suggest
from tfcomp.config.process import exit_on_user_error
from tfcomp.config.run_flags import HELP

COMMANDS = {
    "train": "Trains one decoder: `tfcomp train donut`.",
    "analyze": "Analyzes finished runs.",
    "compare": "Compares finished runs over seeds.",
    "sweep": "Trains every combination of settings and seeds.",
    "solvable": "Lists held-out combinations that follow from training.",
    "embeddings": "Scores embeddings as sums of parts of their factors.",
    "export": "Writes a trained model in the formats of other programs.",
}
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
    if name in HELP:
        for entry, purpose in COMMANDS.items():
            print(f"tfcomp {entry:14}{purpose}")
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
    exit_on_user_error(main)


if __name__ == "__main__":
    run()
