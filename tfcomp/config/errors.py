"""Errors of commands, and the one line that each of them prints.

Mistakes in our own code, and in plugins, keep their tracebacks.
"""

import difflib
import errno
import functools
import os
import re
import traceback
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
MAX_SHOWN = 200  # characters of a value, or of a library's message
# Errors of the system that any path can lead to.
_EXHAUSTED = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ESTALE,
)
_REFUSED = (*_EXHAUSTED, errno.EACCES, errno.EPERM, errno.EROFS)
# TensorFlow quotes errors of the system, as in `... PATH; REASON [Op:...]`.
_QUOTED = re.compile(
    r"OOM when allocating [^\]]*\]|CUDA_ERROR_OUT_OF_MEMORY|"
    rf"(?:\S+; )?(?:{'|'.join(map(os.strerror, _REFUSED))})"
)


class ConfigError(ValueError):
    """A setting that breaks a rule.

    Args:
        name: The flag without dashes, as `grid_size`.
        rule: What must hold, as `must be a multiple of 4`.
        value: The value received.
    """

    def __init__(self, name: str, rule: str, value: object) -> None:
        self.name = name
        self.rule = rule
        self.value = value
        text = repr(value)
        if len(text) > MAX_SHOWN:
            text = f"{text[:MAX_SHOWN]}... ({len(text)} characters)"
        super().__init__(f"--{name} {rule}, got {text}")


class RunError(Exception):
    """A run folder or a file that cannot be used; its message is one line."""

    status = 2  # of the command, for a mistake of usage


class DivergedError(RunError):
    """A training whose loss is no longer finite."""

    status = 1


def name_arguments(
    function: Callable[Given, Result],
) -> Callable[Given, Result]:
    """Makes errors of a Python function speak of arguments, not of flags."""

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except (ConfigError, RunError) as error:
            text = re.sub(r"(^|did you mean )--(?=[a-z]\w*)", r"\1", str(error))
            error.args = (text, *error.args[1:])
            raise

    return call


def suggest(name: str, names: Iterable[str], dashes: str = "") -> str:
    """Returns a hint at the closest name, empty if none is close.

    Args:
        name: What was given.
        names: All names.
        dashes: What stands before a name in the hint.
    """
    matches = difflib.get_close_matches(name, list(names), n=1)
    if not matches:
        return ""
    return f", did you mean {dashes}{matches[0]}?"


def explain_failure(error: BaseException) -> tuple[str, int] | None:
    """Explains an error to the user of a command.

    Returns:
        The line to print and the exit status; None for our own bugs.
    """
    if isinstance(error, ConfigError | RunError):
        status = getattr(error, "status", 2)
        if is_exhausted(error.__cause__):
            status = 1
        return _join(error), status

    refusal = describe_refusal(error)
    if not refusal:
        return None
    return refusal, 1


def is_exhausted(error: BaseException | None) -> bool:
    """Checks whether the system has run out of room, files or memory."""
    return getattr(error, "errno", None) in _EXHAUSTED


def describe_refusal(error: BaseException) -> str:
    """Returns the system's refusal, such as of memory; else an empty text."""
    if isinstance(error, BrokenPipeError):
        return ""  # the reader has gone; it wants no message

    text = _join(error)
    if isinstance(error, MemoryError):
        return f"out of memory: {text[:MAX_SHOWN]}".removesuffix(": ")
    if isinstance(error, OSError):
        reason = text[:MAX_SHOWN]
        if error.errno:
            reason = os.strerror(error.errno)
        if error.filename:
            reason = f"{error.filename}: {reason}"
        elif error.errno == errno.ENOENT:
            reason = f"{reason}: does the working folder exist?"
        return reason

    if type(error).__module__.startswith("tensorflow"):
        quoted = _QUOTED.search(text)
        if quoted:
            return quoted[0].replace("; ", ": ")
    return ""


def describe_plugin_error(error: BaseException) -> str:
    """Returns class and message of an error, and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}"
    return f"{type(error).__name__}: {_join(error)} (at {place})"


def first_line(error: object, text: str | None = None) -> str:
    """Finds the line that says what is wrong.

    Args:
        error: An error; the name of its class stands for an empty message.
        text: A message in place of its own.
    """
    if text is None:
        text = str(error)
    lines = text.strip().splitlines()
    if not lines:
        return type(error).__name__
    return lines[0].strip()


def _join(error: BaseException) -> str:
    return " ".join(str(error).split())
