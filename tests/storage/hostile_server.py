"""An HTTPS server on this machine that answers as it is told, byte by byte."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Answer = Callable[[socket.socket, threading.Event], None]
CRLF = b"\r\n"


def make_certificate(path: Path) -> Path:
    """Writes a key and its own certificate for 127.0.0.1, in one PEM file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    place = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([place]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(pem))
    return path


def make_context(pem: Path) -> ssl.SSLContext:
    """Makes the context of a server with this key and certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    return context


@contextlib.contextmanager
def serve(pem: Path, answer: Answer) -> Iterator[str]:
    """Answers every connection in a thread, until the block ends."""
    stop, context = threading.Event(), make_context(pem)
    threads: list[threading.Thread] = []

    def talk(plain: socket.socket) -> None:
        with plain, contextlib.suppress(OSError):
            with context.wrap_socket(plain, server_side=True) as stream:
                stream.recv(4096)
                answer(stream, stop)

    def accept() -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                thread = threading.Thread(target=talk, args=[door.accept()[0]])
                threads.append(thread)
                thread.start()

    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(0.05)
        threads.append(threading.Thread(target=accept))
        threads[0].start()
        try:
            yield f"https://127.0.0.1:{door.getsockname()[1]}"
        finally:
            stop.set()
            threads[0].join()
            for thread in threads[1:]:
                thread.join()


def send(content: bytes) -> Answer:
    """Sends some bytes and closes the connection."""
    return lambda stream, _: stream.sendall(content)


def drip(start: bytes, drop: bytes, seconds: float = 0.02) -> Answer:
    """Sends the same bytes over and over, for ever."""

    def answer(stream: socket.socket, stop: threading.Event) -> None:
        stream.sendall(start)
        while not stop.wait(seconds):
            stream.sendall(drop)

    return answer


def redirect(target: str, status: int = 302) -> Answer:
    """Sends the client elsewhere."""
    lines = (f"HTTP/1.1 {status} x", f"Location: {target}", "", "")
    return send("\r\n".join(lines).encode("latin-1"))
