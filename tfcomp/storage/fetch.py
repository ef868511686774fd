"""Fetches small files over HTTPS, within a time and a size.

The timeouts of requests, urllib3 and httpx restart with every byte, so a slow
server can hold their users for ever. Here one deadline holds for each file.
"""

from __future__ import annotations

import ssl
import time
import urllib.request as web
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

from tfcomp.config.errors import RunError

SECONDS = 60.0  # for a file, from the connection to its last byte
MISSING = (404, 410)  # status codes


def fetch(address: str, limit: int) -> bytes:
    """Returns the content of a file at an https:// address.

    Raises:
        FileNotFoundError: The server has no such file.
        RunError: The answer has more bytes than `limit`, is not complete after
            `SECONDS`, is an error, or leads to another protocol.
    """
    context = _make_context(time.monotonic() + SECONDS)
    opener = web.build_opener(web.HTTPSHandler(context=context), _HttpsOnly())
    try:
        with opener.open(address, timeout=SECONDS) as answer:
            content: bytes = answer.read(limit + 1)
    except HTTPError as error:
        error.close()
        if error.code in MISSING:
            raise FileNotFoundError(f"{address} does not exist") from error
        rule = f"answers with status {error.code}"
        raise RunError(f"{address} {rule}") from error
    except (OSError, ValueError, HTTPException) as error:
        reason = _describe(error)
        raise RunError(f"{address} does not answer: {reason}") from error
    if len(content) > limit:
        rule = f"is too large: at most {limit:,} bytes are read"
        raise RunError(f"{address} {rule}")
    return content


class _HttpsOnly(web.HTTPRedirectHandler):
    """Follows redirects to https:// alone."""

    def redirect_request(
        self, req: web.Request, fp: Any, code: int, msg: str, *rest: Any
    ) -> web.Request | None:
        if not rest[-1].startswith("https://"):
            fp.close()
            raise URLError("it redirects to another protocol")
        return super().redirect_request(req, fp, code, msg, *rest)


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
    """Returns the reason on one line, without control characters."""
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return f"it took more than {SECONDS:g} seconds"
    text = "".join(c for c in str(cause) if c.isprintable())
    return text[:200] or type(error).__name__
