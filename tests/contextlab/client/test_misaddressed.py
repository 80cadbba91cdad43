"""A server that is addressed wrongly is named at once, and not asked again for a minute."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.management import CommandError, call_command

from contextlab.client.connection import Connection, Misaddressed, Unreachable

REFUSED = ConnectionRefusedError(111, "refused")
UNKNOWN = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
LATER = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def certified(folder: Path) -> ssl.SSLContext:
    """A server's side with a certificate that no authority signed."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(secret + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[int, list[int]]]:
    """The port of that server, and who knocked."""
    context, knocks = certified(tmp_path), list[int]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    one, _ = server.accept()
                    knocks.append(1)
                    with suppress(OSError), context.wrap_socket(one, server_side=True):
                        pass

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()[1], knocks


def test_push_says_at_once_that_a_certificate_is_not_trusted(listening, tmp_path, settings):
    settings.DATA_DIR = tmp_path
    port, knocks = listening
    log = tmp_path / "a.jsonl"
    log.write_text("{}")
    url = f"https://127.0.0.1:{port}"
    with pytest.raises(CommandError) as said:
        call_command("push", str(log), "--url", url, "--key", "clk_x")
    assert str(said.value) == (
        f"The certificate of {url} is not trusted: self-signed certificate. Use the name that it "
        "is for; set SSL_CERT_FILE to the certificate of an authority of your own."
    )
    assert (said.value.returncode, len(knocks)) == (1, 1)


@pytest.fixture
def without_tls() -> Iterator[str]:
    """An address with https:// of a server that speaks none."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            one, _ = server.accept()
            with one:
                one.recv(100)
                one.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_without_tls_is_named(without_tls: str):
    with pytest.raises(Misaddressed, match="does not speak TLS"):
        Connection(without_tls, "clk_x").request("GET", "x")


@pytest.mark.parametrize(
    ("errors", "asked"),
    [([UNKNOWN], 2), ([REFUSED, UNKNOWN], 2), ([LATER], None), ([REFUSED], None)],
    ids=["unknown", "refused before", "no network", "refused"],
)
def test_a_name_has_a_second_try_and_a_refused_connection_many(monkeypatch, errors, asked):
    monkeypatch.setattr("contextlab.client.connection.FIRST_PAUSE", 0.01)
    tries: list[Any] = []

    def connect(*_: Any, **__: Any) -> Any:
        tries.append(1)
        raise errors[min(len(tries), len(errors)) - 1]

    monkeypatch.setattr(socket, "create_connection", connect)
    connection = Connection("http://lab.example", "clk_x", patience=0.5)
    with pytest.raises(Unreachable) as said:
        connection.request("GET", "x")
    assert isinstance(said.value, Misaddressed) == (asked is not None)
    assert len(tries) == asked if asked else len(tries) > 2
