"""How commands end: with a status, and without a traceback."""

from __future__ import annotations

import subprocess
import sys


def test_reader_that_goes_away() -> None:
    # The pipe is read to its first line and closed, as `| head -1` does.
    script = (
        "import sys\n"
        "from tfcomp.config.command import exit_on_user_error\n"
        "def main(argv):\n"
        "    print('first', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    print('second')\n"
        "    return 0\n"
        "exit_on_user_error(main)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        process.stdin.write("go on\n")
        process.stdin.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert errors == ""
