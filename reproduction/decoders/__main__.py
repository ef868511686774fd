"""The command `python -m reproduction.decoders`."""

from reproduction.command import run

run("decoders")
