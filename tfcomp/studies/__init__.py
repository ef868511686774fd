"""Studies of many finished runs.

Only commands import them. The module `command` of each declares its `STUDY`.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from absl import flags

from tfcomp.config.command import run_command


@dataclass(frozen=True)
class Study:
    """A study: its command, and the runs that it needs."""

    name: str
    purpose: str | None  # the first lines of its help
    make_flags: Callable[[], flags.FlagValues]
    judge: Callable[[dict[str, Any]], int]  # of flags, and the line `command`
    # Flagfiles, and flags that follow them; patterns match shipped ones. Names
    # of threshold searches begin with `threshold`; all others are sweeps.
    plan: Sequence[str] = ()
    first: str = ""  # the command to try first, printed if no flag is given

    def main(self, argv: list[str]) -> int:
        """Runs the command; returns its exit status."""
        command = shlex.join(["tfcomp", "study", self.name, *argv[1:]])
        return run_command(
            argv,
            self.purpose,
            self.make_flags,
            lambda values: self.judge(values | {"command": command}),
            self.first,
        )
