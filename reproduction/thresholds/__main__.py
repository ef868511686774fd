"""The command `python -m reproduction.thresholds`."""

from reproduction.command import run

run("thresholds")
