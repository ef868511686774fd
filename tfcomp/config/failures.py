"""Every way in which a command can fail, in one line.

Mistakes in our own code alone keep their tracebacks.
"""

from __future__ import annotations

import errno
import os
import re
import traceback

from tfcomp.config.errors import ConfigError
from tfcomp.config.errors import RunError

# A path that cannot be right is a wrong flag; these can happen to any.
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
_PATHS = errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR
# How libraries quote what the system has said, as in `path; reason`.
_REASONS = "|".join(os.strerror(code) for code in (*_EXHAUSTED, *_PATHS))
_QUOTED = re.compile(rf"(?:(\S+?)(?:\.tempstate\d+)?; )?({_REASONS})")
_SHOWN = 300  # characters of a library's message

# Files, or folders, of the plugins that have been asked for, and their names.
PLUGINS: dict[str, str] = {}


def explain_failure(error: BaseException) -> tuple[str, int] | None:
    """The line to print and the exit status.

    `ConfigError`, `RunError` and what a plugin raises have status 2 (a
    diverged training 1), what the system refuses has 1.

    Args:
        error: What a command has raised.

    Returns:
        None for a mistake in our own code.
    """
    if isinstance(error, ConfigError | RunError):
        is_exhausted = getattr(error.__cause__, "errno", None) in _EXHAUSTED
        status = 1 if is_exhausted else getattr(error, "status", 2)
        return _join(str(error)), status
    if refusal := describe_refusal(error):
        return refusal, 1
    for path, name in PLUGINS.items():
        if place := _locate(error, path):
            return describe_plugin_error(name, error, place), 2
    return None


def describe_refusal(error: BaseException) -> str:
    """What the system has refused, such as memory; empty for other errors."""
    if isinstance(error, BrokenPipeError):
        return ""  # the reader has gone; it wants no message
    text, kind = _join(str(error)), type(error).__name__
    is_tensorflow = "tensorflow" in type(error).__module__
    quoted = _QUOTED.search(text)
    if isinstance(error, OSError) or (is_tensorflow and quoted):
        path, reason = quoted.groups() if quoted else ("", text[:_SHOWN])
        path = getattr(error, "filename", None) or path
        reason = getattr(error, "strerror", None) or reason or kind
        return f"{path}: {reason}" if path else reason
    if isinstance(error, MemoryError):
        return f"out of memory: {text[:_SHOWN]}".removesuffix(": ")
    if is_tensorflow and kind == "ResourceExhaustedError":
        wanted = re.search(r"OOM when allocating [^\]]*\]", text)
        return f"out of memory: {wanted[0] if wanted else text[:_SHOWN]}"
    if isinstance(error, UnicodeEncodeError):
        return f"cannot write {error.object[:_SHOWN]!a} in {error.encoding}"
    if kind == "RuntimeError" and "can't start new thread" in text:
        return "too many threads: the system starts no more"
    return ""


def describe_plugin_error(name: str, error: BaseException, place: str) -> str:
    """What went wrong in a plugin, and where, as `parts.py:7`."""
    where = f"{type(error).__name__} at {place}"
    return f"--plugins: {name} failed: {_join(str(error))} ({where})"


def locate_in_plugin(name: str, error: BaseException) -> str:
    """File and line of the last step that was taken in a plugin."""
    paths = (path for path, plugin in PLUGINS.items() if plugin == name)
    return next(filter(None, (_locate(error, p) for p in paths)), name)


def _locate(error: BaseException, path: str) -> str:
    places = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        places.append((str(error.filename), error.lineno))
    for file, line in reversed(places):
        if file == path or file.startswith(path + os.sep):
            return f"{file}:{line}"
    return ""


def _join(text: str) -> str:
    return " ".join(text.split())
