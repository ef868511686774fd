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
    """A question: its command, and what is run to answer it.

    Attributes:
        purpose: What its help begins with.
        judge: Does what the flags ask for, given their values and, for reports,
            the whole line as `command`; returns the exit status.
        plan: Flagfiles, and flags that follow them, in the order in which they
            run; patterns are of those shipped.
        start: What the names of its own flagfiles begin with, of which
            `make_work` makes what runs, and which are judged as they run. All
            other flagfiles are sweeps.
        first: What to try first: without flags, a long run does not start.
    """

    name: str
    purpose: str | None
    make_flags: Callable[[], flags.FlagValues]
    judge: Callable[[dict[str, Any]], int]
    plan: Sequence[str] = ()
    start: str = ""
    make_work: Callable[[dict[str, Any]], Any] | None = None
    first: str = ""

    def main(self, argv: list[str]) -> int:
        """The command; returns its exit status."""
        command = shlex.join(["tfcomp", "study", self.name, *argv[1:]])
        return run_command(
            argv,
            self.purpose,
            self.make_flags(),
            lambda values: self.judge(values | {"command": command}),
            self.first,
        )
