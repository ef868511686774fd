"""Every failure is one line; a mistake of our own keeps its traceback."""

import errno
import os
import sys

import pytest

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import DivergedError, RunError, explain_failure

FULL = "No space left on device"


def refuse(code: int, path: str | None = None) -> OSError:
    return OSError(code, os.strerror(code), path)


def make_tensorflow_error(
    text: str, kind: str = "ResourceExhaustedError"
) -> Exception:
    place = {"__module__": "tensorflow.python.framework.errors_impl"}
    return type(kind, (Exception,), place)(text)


def wrap(error: OSError) -> RunError:
    wrapped = RunError(f"--output must be writable: {error}")
    wrapped.__cause__ = error
    return wrapped


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (refuse(errno.ENOSPC, "a/b.csv"), f"a/b.csv: {FULL}", 1),
        # h5py appends details.
        (OSError(errno.ENOSPC, f"Can't write ({FULL})"), FULL, 1),
        (MemoryError("Unable to\nallocate"), "out of memory: Unable to", 1),
        (
            make_tensorflow_error(
                "{{node x}} a/ckpt-2.data.tempstate719; "
                + FULL
                + " [Op:SaveV2]"
            ),
            f"a/ckpt-2.data.tempstate719: {FULL}",
            1,
        ),
        (
            make_tensorflow_error(
                "Graph execution error:\n\nDetected at node x\n"
                "OOM when allocating tensor with shape[9,9] and type float\n"
            ),
            "OOM when allocating tensor with shape[9,9]",
            1,
        ),
        (wrap(refuse(errno.ENOSPC)), "--output must be writable: ", 1),
        (wrap(refuse(errno.EACCES)), "--output must be writable: ", 2),
        (RunError("two\nlines"), "two lines", 2),
        (DivergedError("up"), "up", 1),
    ],
)
def test_failure_in_one_line(error: Exception, line: str, status: int) -> None:
    found, code = explain_failure(error)
    assert found.startswith(line) and "\n" not in found and len(found) < 500
    assert code == status


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        BrokenPipeError(),
        make_tensorflow_error("shapes differ", "InvalidArgumentError"),
    ],
)
def test_other_errors_are_not_explained(error: Exception) -> None:
    assert explain_failure(error) is None


def test_refusal_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def refuse_room(settings: dict) -> int:
        raise refuse(errno.ENOSPC, "a")

    def main(argv: list[str]) -> int:
        flags = {"resume": (False, "To go on.")}
        return run_command(argv, "Does.", flags, refuse_room)

    monkeypatch.setattr(sys, "argv", ["command"])
    with pytest.raises(SystemExit) as ended:
        exit_on_user_error(main)
    line = capsys.readouterr().err
    assert ended.value.code == 1 and line.startswith(f"error: a: {FULL}; ")
    assert line.endswith("--resume\n")
