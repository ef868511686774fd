"""Studies of many finished runs, which only commands import."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from tfcomp.config.command import FlagTable, run_command


def make_main(
    name: str,
    purpose: str | None,
    table: FlagTable,
    judge: Callable[[dict[str, Any]], int],
    first: str = "",
) -> Callable[[Sequence[str]], int]:
    """Returns `main(argv)` of a study, which also gives it its `command`."""

    def main(argv: Sequence[str]) -> int:
        line = {"command": shlex.join(["tfcomp", "study", name, *argv[1:]])}
        return run_command(
            argv, purpose, table, lambda flags: judge(flags | line), first
        )

    return main
