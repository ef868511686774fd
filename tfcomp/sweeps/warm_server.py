"""Runs one command of tfcomp after the other in a process that stays warm.

    python -m tfcomp.sweeps.warm_server SOCKET

To start Python, to import TensorFlow and to trace functions takes most of the
time of a short trial; this process does so once. It reads requests from the
socket with the file descriptor SOCKET, a line of JSON each, runs the command
that a request names, and answers with a line. It ends when the socket is
closed, or when it has been idle for a while.

A request has the `module` of the command, its `arguments`, the `folder` to
work in, and the `log` that its output is appended to. The reply is the exit
status of the command.
"""

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from typing import IO

from tfcomp.config.command import exit_on_user_error

IDLE_SECONDS = 120


def main(argv: list[str]) -> None:
    """Serves requests until there are no more."""
    with socket.socket(fileno=int(argv[1])) as connection:
        with connection.makefile("rw") as lines:
            while line := read_line(lines):
                request = json.loads(line)
                os.chdir(request["folder"])
                # Also what C++ code prints.
                with open(request["log"], "ab") as log:
                    for descriptor in (1, 2):
                        os.dup2(log.fileno(), descriptor)
                status = run(request["module"], request["arguments"])
                print(status, file=lines, flush=True)


def read_line(lines: IO[str]) -> str:
    """The next line, empty at the end; a signal ends us if none comes."""
    # A command has it raise what would stand in its log.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.alarm(IDLE_SECONDS)
    line = lines.readline()
    signal.alarm(0)
    return line


def run(module: str, arguments: list[str]) -> int:
    """Calls `main` of a module in this process; returns its exit status."""
    sys.argv = [module, *arguments]
    try:
        exit_on_user_error(importlib.import_module(module).main)
    except SystemExit as end:
        return end.code
    except BaseException:  # the answer must be sent, whatever has happened
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv)
