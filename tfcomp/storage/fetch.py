"""Fetches small files over HTTPS, within a time and a size.

The timeouts of requests, urllib3 and httpx start anew with every byte, so a
server that drips holds their users for ever. Here a socket knows when the
whole answer is due.
"""

from __future__ import annotations

import ssl
import time
import urllib.request as web
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urljoin

from tfcomp.config.errors import RunError

SECONDS = 60.0  # for a file, from the connection to its last byte
MAX_REDIRECTS = 5
MISSING = (404, 410)  # status codes
REDIRECTS = (301, 302, 303, 307, 308)


def fetch(address: str, limit: int) -> bytes:
    """Returns the content of a file at an https:// address.

    Raises:
        FileNotFoundError: The server has no such file.
        RunError: The answer has more bytes than `limit`, is not complete after
            `SECONDS`, is an error, or leads to another protocol.
    """
    opener = _make_opener(time.monotonic() + SECONDS)
    place = address
    for _ in range(MAX_REDIRECTS + 1):
        try:
            with opener.open(place, timeout=SECONDS) as answer:
                content: bytes = answer.read(limit + 1)
        except HTTPError as error:
            place = _find_target(place, error)
        except (OSError, ValueError, HTTPException) as error:
            reason = _describe(error)
            raise RunError(f"{address} does not answer: {reason}") from error
        else:
            if len(content) > limit:
                rule = f"is too large: at most {limit:,} bytes are read"
                raise RunError(f"{address} {rule}")
            return content
    raise RunError(f"{address} redirects more than {MAX_REDIRECTS} times")


def _find_target(place: str, error: HTTPError) -> str:
    """Returns where a redirect leads; other statuses raise as `fetch` does."""
    headers = error.headers
    error.close()
    if error.code in MISSING:
        raise FileNotFoundError(f"{place} does not exist") from error
    target = headers.get("Location") if error.code in REDIRECTS else None
    if not target:
        raise RunError(f"{place} answers with status {error.code}") from error
    try:
        return urljoin(place, target)
    except ValueError as reason:
        raise RunError(f"{place} redirects to no address") from reason


def _make_opener(deadline: float) -> web.OpenerDirector:
    """Makes an opener for HTTPS alone, which follows no redirect by itself."""
    opener = web.OpenerDirector()
    for handler in (
        web.ProxyHandler(),
        web.HTTPSHandler(context=_make_context(deadline)),
        web.HTTPDefaultErrorHandler(),
        web.HTTPErrorProcessor(),
        web.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _make_context(deadline: float) -> ssl.SSLContext:
    """Makes a context whose sockets read nothing after the deadline."""

    class TimedSocket(ssl.SSLSocket):
        def recv_into(self, *args: Any, **kwargs: Any) -> int:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.settimeout(left)
            return super().recv_into(*args, **kwargs)

    context = ssl.create_default_context()
    context.sslsocket_class = TimedSocket
    return context


def _describe(error: Exception) -> str:
    """Returns the reason on one line, without what a terminal would obey."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return f"it took more than {SECONDS:g} seconds"
    text = "".join(c for c in str(cause) if c.isprintable())
    return text[:200] or type(error).__name__
