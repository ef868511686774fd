"""A checksum in the first and last line of `run.flags`.

Every flag has a default, so a file that lost lines would describe another run.
Files of versions before 0.2.0 have no checksum and are read as they are. A
file that lost either half still has one of the two lines, which does not agree.
"""

import hashlib
import re
from collections.abc import Sequence

_SEAL = re.compile(r"^#= \d+ flags, sha256 [0-9a-f]{16}$", re.MULTILINE)


def split_lines(text: str) -> list[str]:
    """Returns the lines of a flagfile that are no comments."""
    stripped = (line.strip() for line in text.splitlines())
    return [ln for ln in stripped if ln and not ln.startswith(("#", "//"))]


def seal(text: str) -> str:
    """Returns a flagfile with the checksum of its flags around it."""
    line = _format_seal(split_lines(text))
    return f"{line}\n{text}{line}\n"


def find_damage(text: str) -> str:
    """Returns the reason why a flagfile is not what was sealed, or nothing."""
    found = set(_SEAL.findall(text))
    if found and found != {_format_seal(split_lines(text))}:
        return (
            "lines are missing or were changed; if you changed them, remove "
            "the lines that begin with #="
        )
    return ""


def _format_seal(lines: Sequence[str]) -> str:
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return f"#= {len(lines)} flags, sha256 {digest[:16]}"
