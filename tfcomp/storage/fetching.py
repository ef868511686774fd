"""Files from an address that somebody gave, by HTTPS alone."""

import urllib.request as web
from http.client import HTTPException

from tfcomp.config.errors import RunError

SECONDS = 30  # without an answer
# No handler of other protocols, to which an address may lead.
HANDLERS = (
    web.ProxyHandler,
    web.HTTPSHandler,
    web.HTTPRedirectHandler,
    web.HTTPDefaultErrorHandler,
    web.HTTPErrorProcessor,
    web.UnknownHandler,
)


def fetch(address: str, limit: int) -> bytes:
    """The content of a file; RunError if it is longer than so many bytes or the
    address does not answer, FileNotFoundError if that says that there is
    none."""
    opener = web.OpenerDirector()
    for handler in HANDLERS:
        opener.add_handler(handler())
    try:
        with opener.open(address, timeout=SECONDS) as stream:
            content = stream.read(limit + 1)
    except (OSError, ValueError, HTTPException) as error:
        if getattr(error, "code", None) in (404, 410):
            raise FileNotFoundError(address) from error
        reason = " ".join(str(error).split()) or type(error).__name__
        raise RunError(f"{address} does not answer: {reason}") from error
    if len(content) > limit:
        raise RunError(f"{address} is too large: at most {limit:,} bytes")
    return content
