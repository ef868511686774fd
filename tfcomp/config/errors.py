"""Errors of commands, and the one line that each of them prints.

Mistakes in our own code keep their tracebacks.
"""

import difflib
import errno
import os
import re
import traceback
from collections.abc import Iterable

MAX_SHOWN = 200  # characters of a value in an error
# Errors of the system that any path can lead to.
_EXHAUSTED = "ENOSPC EDQUOT EFBIG EIO EMFILE ENFILE ENOMEM ESTALE".split()
_CODES = [*_EXHAUSTED, "EACCES", "EPERM", "EROFS", "ENOENT", "ENOTDIR"]
# How libraries quote what the system has said, as in `path; reason`.
_REASONS = "|".join(os.strerror(getattr(errno, code)) for code in _CODES)
_REASON = re.compile(_REASONS)
_PARTIAL = re.compile(r"\.tempstate\d+$")  # a file that TensorFlow writes
_LONGEST = 4096  # characters of a path
_SHOWN = 300  # characters of a library's message
PLUGINS: dict[str, str] = {}  # imported plugins: name to file or folder


class ConfigError(ValueError):
    """A setting that breaks a rule.

    Args:
        name: The flag without dashes, as `grid_size`.
        rule: What must hold, as `must be a multiple of 4`.
        value: The value received.
    """

    def __init__(self, name: str, rule: str, value: object) -> None:
        self.name, self.rule, self.value = name, rule, value
        super().__init__(f"--{name} {rule}, got {_show(value)}")


class RunError(Exception):
    """A run folder or a file that cannot be used; its message is one line."""

    status = 2


class RefusedError(RunError):
    """The system refuses room, memory or rights: no mistake of usage."""

    status = 1


class DivergedError(RunError):
    """A training whose loss is no longer finite: no mistake of usage."""

    status = 1


def suggest(name: str, known: Iterable[str], dashes: str = "") -> str:
    """Returns a hint at the closest known name, empty if none is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {dashes}{close[0]}?" if close else ""


def _show(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of 5,000 digits
        return "a number of thousands of digits"
    return _cut(text, MAX_SHOWN)


def _cut(text: str, most: int) -> str:
    """Returns the text, or its beginning and its length if it is longer."""
    if len(text) <= most:
        return text
    return f"{text[:MAX_SHOWN]}... ({len(text)} characters)"


def explain_failure(error: BaseException) -> tuple[str, int] | None:
    """Returns the line to print and the exit status; None for our own bugs.

    The status is 2 for mistakes of users and plugins, else 1.
    """
    if isinstance(error, ConfigError | RunError):
        is_refused = is_exhausted(error.__cause__)
        status = 1 if is_refused else getattr(error, "status", 2)
        return _shorten(_join(error)), status
    if refusal := describe_refusal(error):
        return _shorten(refusal), 1
    line = describe_plugin_error(error)
    return (f"--plugins: {line}", 2) if line else None


def is_exhausted(error: BaseException | None) -> bool:
    """Checks whether the system has run out of room, files or memory."""
    code = getattr(error, "errno", None) or 0
    return errno.errorcode.get(code, "") in _EXHAUSTED


def describe_refusal(error: BaseException) -> str:
    """Returns what the system refused, such as memory; else an empty text."""
    if isinstance(error, BrokenPipeError):
        return ""  # the reader has gone; it wants no message
    text, kind = _join(error), type(error).__name__
    is_tensorflow = "tensorflow" in type(error).__module__
    quoted = _REASON.search(text)
    if isinstance(error, OSError) or (is_tensorflow and quoted):
        path, reason = _quote(text, quoted) if quoted else ("", text[:_SHOWN])
        path = getattr(error, "filename", None) or path
        reason = getattr(error, "strerror", None) or reason or kind
        return f"{path}: {reason}" if path else reason
    is_gpu_full = "CUDA_ERROR_OUT_OF_MEMORY" in text
    if is_tensorflow and (kind == "ResourceExhaustedError" or is_gpu_full):
        wanted = re.search(r"OOM when allocating [^\]]*\]", text)
        return f"out of memory: {wanted[0] if wanted else text[:_SHOWN]}"
    if isinstance(error, MemoryError):
        return f"out of memory: {text[:_SHOWN]}".removesuffix(": ")
    if isinstance(error, UnicodeEncodeError):
        return f"cannot write {error.object[:_SHOWN]!a} in {error.encoding}"
    return text if "can't start new thread" in text else ""


def _quote(text: str, reason: re.Match) -> tuple[str, str]:
    """Returns the path of `... PATH; REASON`, if any, and the reason."""
    before = text[: reason.start()]
    words = before.removesuffix("; ").split() if before.endswith("; ") else []
    return _PARTIAL.sub("", words[-1]) if words else "", reason[0]


def describe_plugin_error(error: BaseException) -> str:
    """Returns the plugin and its line that raised an error; empty if none."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames]
    if isinstance(error, SyntaxError):
        places.append((str(error.filename), error.lineno))
    for file, line in reversed(places):
        for name, path in PLUGINS.items():
            if file == path or file.startswith(path + os.sep):
                where = f"{type(error).__name__} at {file}:{line}"
                return f"{name} failed: {_join(error)} ({where})"
    return ""


def first_line(error: object, text: str | None = None) -> str:
    """Returns the first line of the message or `text`, else the class."""
    lines = (str(error) if text is None else text).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _shorten(line: str) -> str:
    """Cuts words that are longer than any path."""
    return " ".join(_cut(word, _LONGEST) for word in line.split(" "))


def _join(error: BaseException) -> str:
    return " ".join(str(error).split())
