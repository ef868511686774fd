"""Draws every figure and table of the paper from finished runs.

    tfcomp study paper --runs='tensorboard_logs/*' --output=figures

writes PNG files and index.md, which says what the paper shows, which runs were
used, and, for all that is missing, the command that makes it. Pictures of
scores are drawn from packed evidence, too; pictures of networks need run
folders. Without --runs it draws what needs no run and lists all commands.
"""

import functools
import shlex
from pathlib import Path
from typing import Any

from tfcomp.config.command import run_command
from tfcomp.config.errors import ConfigError, suggest
from tfcomp.config.run_flags import make_flags
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_search import split_patterns

FLAGS = {
    "runs": (
        "",
        "Run folders, folders that contain them, or packed evidence: patterns "
        "with *, separated by commas.",
    ),
    "output": ("paper_figures", "The folder for the figures and index.md."),
    "only": ("", "Figures to draw, separated by commas; by default all."),
}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    command = shlex.join(["tfcomp", "study", "paper", *argv[1:]])
    draw = functools.partial(draw_figures, command=command)
    return run_command(argv, __doc__, make_flags(FLAGS), draw)


def draw_figures(settings: dict[str, Any], command: str) -> int:
    """Draws what the runs allow, and says what is missing.

    Raises:
        ConfigError: If there is no folder to write, nothing to read, or no
            such figure.
    """
    check_folder("output", settings["output"])
    # These import libraries for figures, after the flags are checked.
    from tfcomp.studies.claims import Evidence, read_some_evidence
    from tfcomp.studies.paper import read_figures, write_figures

    figures = read_figures()
    names = split_patterns(settings["only"]) or list(figures)
    for name in names:
        if name not in figures:
            hint = suggest(name, figures) or f" of {'; '.join(figures)}"
            raise ConfigError("only", f"must name figures{hint}", name)
    runs = settings["runs"]
    evidence = read_some_evidence(runs) if runs else Evidence()
    output = Path(settings["output"])
    chosen = [figures[name] for name in names]
    for entry in write_figures(chosen, evidence, output, command):
        print(f"{entry.figure.name:8} {entry}", flush=True)
    for note in evidence.notes:
        print(f"note {note}")
    print(f"\nindex  {output / 'index.md'}")
    return 0
