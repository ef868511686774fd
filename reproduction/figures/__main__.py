"""The command `python -m reproduction.figures`."""

from reproduction.command import run

run("figures")
