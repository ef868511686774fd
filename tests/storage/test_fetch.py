"""Files over HTTPS: a server can neither hold a command nor write to it."""

import time
from pathlib import Path

import pytest

from tests.storage.hostile_server import (
    Answer,
    drip,
    make_certificate,
    redirect,
    send,
    serve,
)
from tfcomp.config.errors import RunError
from tfcomp.storage import fetch, published_folder

OK = b"HTTP/1.1 200 OK\r\n"
SECONDS = 1.0


@pytest.fixture(autouse=True)
def pem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trusts the server of the test, and waits a second alone."""
    path = make_certificate(tmp_path / "server.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetch, "SECONDS", SECONDS)
    return path


@pytest.mark.parametrize(
    "answer",
    [
        drip(OK + b"\r\n", b"x"),
        drip(OK + b"X: ", b"x"),
        drip(b"", b"x"),
        drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0),
        drip(b"HTTP/1.1 302 x\r\nLocation: /y\r\n", b"X"),
        lambda stream, stop: stop.wait(60),
    ],
)
def test_a_slow_server_is_left_in_time(pem: Path, answer: Answer) -> None:
    with serve(pem, answer) as address:
        start = time.monotonic()
        with pytest.raises(RunError, match="took more than 1 seconds"):
            fetch.fetch(f"{address}/index.json", 1000)
        assert time.monotonic() - start < 5 * SECONDS


def test_a_server_without_a_handshake_is_left_in_time() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"https://127.0.0.1:{door.getsockname()[1]}/x"
        with pytest.raises(RunError, match="took more than"):
            fetch.fetch(address, 10)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (send(OK + b"X: y\r\n" * 101 + b"\r\n"), "more than 100 headers"),
        (send(OK + b"X: " + b"y" * 10**5), "header line"),
        (send(OK + b"\r\n" + b"x" * 20), "too large: at most 10 bytes"),
        (send(b"HTTP/1.1 500 \x1b[2J\x07gone\r\n\r\n"), "with status 500$"),
        (send(b"\x1b[2J\x07 no HTTP\r\n\r\n"), "does not answer"),
        (redirect("http://127.0.0.1/x"), "redirects to another protocol"),
        (redirect("file:///etc/passwd"), "does not answer|with status 302"),
        (redirect("/again"), "with status 302"),
        (send(b""), "does not answer"),
    ],
)
def test_other_answers_are_one_line(
    pem: Path, answer: Answer, words: str
) -> None:
    with serve(pem, answer) as address:
        with pytest.raises(RunError, match=words) as refused:
            fetch.fetch(f"{address}/index.json", 10)
    assert str(refused.value).isprintable()


def test_redirects_are_followed(pem: Path) -> None:
    with serve(pem, send(OK + b"\r\nhere")) as final:
        with serve(pem, redirect(f"{final}/y", 307)) as address:
            assert fetch.fetch(f"{address}/x", 10) == b"here"


@pytest.mark.parametrize("status", [404, 410])
def test_a_missing_file_says_what_is_missing(pem: Path, status: int) -> None:
    with serve(pem, send(b"HTTP/1.1 %d x\r\n\r\n" % status)) as address:
        with pytest.raises(FileNotFoundError, match=f"{address}/x does not"):
            fetch.fetch(f"{address}/x", 10)
        with pytest.raises(RunError, match=r"it has no index\.json$"):
            published_folder.list_published(address)
        with pytest.raises(RunError, match=r"it has no SHA256SUMS$"):
            published_folder.read_model(address)
