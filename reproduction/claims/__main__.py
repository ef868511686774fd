"""The command `python -m reproduction.claims`."""

from reproduction.command import run

run("claims")
