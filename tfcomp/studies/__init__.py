"""Studies: questions asked of many finished runs.

They stand on the library, and nothing outside imports them but the commands.
Each is declared by the `STUDY` of its module `command`.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from absl import flags

from tfcomp.config.command import run_command


@dataclass(frozen=True)
class Study:
    """A question, its command, and the runs that answer it.

    Attributes:
        purpose: The first lines of its help.
        judge: Does what the flags ask for, given their values and, for reports,
            the whole line as `command`; returns the exit status.
        plan: Flagfiles, and flags that follow them, in the order in which they
            run; patterns are of shipped ones. Names of threshold searches begin
            with `threshold`; all others are sweeps.
        first: The command to try first: without flags, a long run does not
            start.
    """

    name: str
    purpose: str | None
    make_flags: Callable[[], flags.FlagValues]
    judge: Callable[[dict[str, Any]], int]
    plan: Sequence[str] = ()
    first: str = ""

    def main(self, argv: list[str]) -> int:
        """Runs the command; returns its exit status."""
        command = shlex.join(["tfcomp", "study", self.name, *argv[1:]])
        return run_command(
            argv,
            self.purpose,
            self.make_flags(),
            lambda values: self.judge(values | {"command": command}),
            self.first,
        )
