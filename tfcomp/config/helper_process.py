"""A Python process beside this one that answers requests, one at a time.

Each request and each answer is bytes, preceded by a line with their number. The
helper ends when its stdin is closed, as it is even if this process is killed.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import IO


class HelperProcess:
    """Runs a module that calls `serve_requests` as its main program."""

    def __init__(self, module: str) -> None:
        self._log = tempfile.TemporaryFile()
        places = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | {"PYTHONPATH": places},
        )

    def ask(self, request: bytes) -> bytes:
        """The answer to a request; one thread at a time may ask.

        An `OSError` says that the process has ended, and what it printed last.
        """
        assert self._process.stdin and self._process.stdout
        try:
            _write(self._process.stdin, request)
            return _read(self._process.stdout)
        except (OSError, ValueError, EOFError) as error:
            self._process.kill()
            status = self._process.wait()
            self._log.seek(0)
            log = self._log.read().decode(errors="replace").strip()
            reason = log.splitlines()[-1] if log else f"status {status}"
            self.stop()
            raise OSError(f"its process has ended: {reason}") from error

    def stop(self) -> None:
        """Ends the process, if it has not ended."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):  # the rest of a broken request
                stream.close()


def serve_requests(answer: Callable[[bytes], bytes]) -> None:
    """Answers until stdin ends; what is printed meanwhile goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError):
        while True:
            _write(answers, answer(_read(sys.stdin.buffer)))


def _write(stream: IO[bytes], content: bytes) -> None:
    stream.write(b"%d\n" % len(content) + content)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes:
    """Reads what `_write` has written; EOFError at the end."""
    line = stream.readline()
    content = stream.read(int(line)) if line else b""
    if not line or len(content) < int(line):
        raise EOFError
    return content
