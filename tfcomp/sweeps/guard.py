"""Starts a command that dies with the process that started it.

    python -I -S guard.py PARENT COMMAND...

Linux sends the signal when the *thread* that started us ends, so the thread
that waits for us must start us; elsewhere the command outlives a parent that
is killed. A file that needs little starts in a hundredth of a second.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Replaces this process by the command."""
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before it could be asked for.
        if os.getppid() != int(parent):
            os.kill(os.getpid(), signal.SIGKILL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"error: cannot start {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
