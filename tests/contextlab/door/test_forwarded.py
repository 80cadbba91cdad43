"""Forwarded headers count only from trusted proxies."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from twisted.web.http_headers import Headers

from contextlab.door.forwarded import keep_trusted
from tests.conftest import running, wait_until
from tests.contextlab.door.test_door import answer, head
from tests.faults.live_agent import new_token
from tests.faults.store import in_data_dir

NAMES = ("X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port")


@pytest.fixture(autouse=True)
def trusted(settings: Any) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.TRUSTED_PROXIES = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]


def kept(peer: str, *said: str) -> list[str] | None:
    headers = Headers({name: ["https"] for name in NAMES})
    headers.setRawHeaders("X-Forwarded-For", list(said))
    keep_trusted(headers, peer)
    return headers.getRawHeaders("X-Forwarded-For")


@pytest.mark.parametrize("peer", ["9.9.9.9", "10.2.0.1", "fe80::1", "socket"])
def test_others_may_say_nothing(peer: str) -> None:
    headers = Headers({name: ["https"] for name in (*NAMES, "Forwarded", "Accept")})
    keep_trusted(headers, peer)
    assert [name for name, _ in headers.getAllRawHeaders()] == [b"Accept"]


@pytest.mark.parametrize(
    ("said", "client"),
    [
        (["7.7.7.7"], "7.7.7.7"),
        (["6.6.6.6, 7.7.7.7"], "7.7.7.7"),  # the client said 6.6.6.6
        (["6.6.6.6", "7.7.7.7, 10.1.0.9, fd00::5"], "7.7.7.7"),  # three proxies of ours
        (["10.1.0.7, 10.1.0.8"], "10.1.0.7"),  # a client inside
        (["garbage, 10.1.0.8"], "garbage"),
    ],
)
def test_the_client_is_the_last_address_outside(said: list[str], client: str) -> None:
    assert kept("10.1.0.2", *said) == [client]


def test_nothing_said_stays_nothing() -> None:
    assert kept("10.1.0.2", "") == [""]


def test_a_server_trusts_loopback_alone_by_default(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for named, seen in ((None, "7.7.7.7"), ("10.1.0.0/16", "127.0.0.1")):
        folder = tmp_path_factory.mktemp("forwarded")
        given = {"CONTEXTLAB_TRUSTED_PROXIES": named} if named else {}
        with running(folder, CONTEXTLAB_BEHIND_TLS_PROXY="1", **given) as server:
            key = f"Authorization: Bearer {new_token(folder)}"
            # Refused and audited, with an address: the key may not erase.
            body = b'{"kind": "session", "value": "x"}'
            sent = head(
                "POST /api/v1/erasures",
                *(key, "Content-Type: application/json", f"Content-Length: {len(body)}"),
                *("X-Forwarded-For: 7.7.7.7", "Connection: close"),
            )
            assert answer(server, sent + body)[0] == 403
            wait_until(lambda at=folder: addresses(at))
            assert addresses(folder) == {seen}


def addresses(folder: Path) -> set[str]:
    rows = in_data_dir(folder).rows("SELECT ip FROM agent_sessions_auditentry WHERE via = 'key'")
    return {ip for (ip,) in rows}
