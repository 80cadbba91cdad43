"""Requests to addresses that users chose: which are made, and which never leave."""

from __future__ import annotations

import socket
import threading
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from sessions.actions.notifications import outbound
from sessions.actions.notifications.outbound import InvalidAddress, check_address, is_public, post
from tests.sessions.notifications.receivers import web_receiver

LOCAL = [ip_network("127.0.0.0/8")]


@pytest.fixture
def open_loopback(settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = LOCAL


@pytest.mark.fault("I3")
@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1"),
        *("fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::"),
        *("::127.0.0.1", "::ffff:0:127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::1", "2001:0:1::1"),
    ],
)
def test_an_address_that_is_not_public(address: str):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_a_public_address(address: str):
    assert is_public(ip_address(address))


@pytest.mark.fault("I3")
@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.com/", "https://", "example.com", "https://a:b@example.com/"),
        *("https://example.com:x/", "https://exa mple.com/", "https://[::1]/", "https://[::1"),
        *("https://127.0.0.1/", "http://example.com/", f"https://example.com/{'a' * 500}"),
        *("https://example.com/\n", "https://ex\u00e4mple.com/"),
    ],
)
def test_a_url_that_is_refused(url: str):
    with pytest.raises(InvalidAddress):
        check_address(url)


def test_plain_http_only_where_the_operator_allows_a_network(settings: Any):
    settings.WEBHOOK_NETWORKS = LOCAL
    assert check_address("http://127.0.0.1:8000/x").port == 8000
    with pytest.raises(InvalidAddress):
        check_address("http://1.1.1.1/")


@pytest.mark.fault("I3")
def test_nothing_is_sent_to_this_machine():
    with web_receiver() as there:
        for host in ("127.0.0.1", "localhost"):
            reply = post(there.url.replace("127.0.0.1", host).replace("http:", "https:"), b"", {})
            assert "private, local or reserved network" in reply.problem
            assert not reply.again
    assert there.requests == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let a name server answer these in turn; return the names asked for."""
    asked: list[str] = []
    left = list(answers)

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in left.pop(0)]

    monkeypatch.setattr(outbound.socket, "getaddrinfo", getaddrinfo)
    return asked


def test_one_private_address_among_several_is_enough(monkeypatch: pytest.MonkeyPatch):
    resolving(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    assert "private" in post("https://rebind.example/", b"", {}).problem


@pytest.mark.fault("I3")
def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(
    monkeypatch: pytest.MonkeyPatch, settings: Any
):
    """The second answer would be a private address, which only the first answer's check allows."""
    asked = resolving(monkeypatch, ["1.1.1.1"], ["127.0.0.1"])
    gone: list[Any] = []

    def create_connection(address: Any, *_: Any) -> Any:
        gone.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(outbound.socket, "create_connection", create_connection)
    assert post("https://rebind.example/", b"", {}).problem == "It refused the connection."
    assert (asked, gone) == (["rebind.example"], [("1.1.1.1", 443)])


@pytest.mark.fault("I3")
@pytest.mark.usefixtures("open_loopback")
def test_a_redirect_is_not_followed():
    with web_receiver(302) as there:
        reply = post(f"{there.url}/in?x=1", b"{}", {"Content-Type": "application/json"})
    assert (reply.status, reply.again) == (302, False)
    assert "Redirects are not followed" in reply.problem
    assert [path for path, *_ in there.requests] == ["/in?x=1"]


@pytest.mark.usefixtures("open_loopback")
@pytest.mark.parametrize(
    ("status", "again"), [(204, False), (400, False), (410, False), (429, True), (503, True)]
)
def test_which_answers_are_worth_another_attempt(status: int, again: bool):
    with web_receiver(status) as there:
        reply = post(there.url, b"{}", {})
    assert (reply.status, reply.again, not reply.problem) == (status, again, status == 204)


@pytest.mark.usefixtures("open_loopback")
@pytest.mark.parametrize(
    ("scheme", "begun"),
    [("http", b""), ("http", b"HTTP/1.1 200 OK\r\nX-Slow: "), ("https", b"")],
    ids=["silent", "within the headers", "within the handshake"],
)
def test_a_receiver_that_answers_drop_by_drop_is_cut(
    monkeypatch: pytest.MonkeyPatch, scheme: str, begun: bytes
):
    monkeypatch.setattr(outbound, "ALL_SECONDS", 0.2)
    monkeypatch.setattr(outbound, "CONNECT_SECONDS", 60)
    held: list[socket.socket] = []

    def answer() -> None:
        held.append(slow.accept()[0])
        held[0].sendall(begun)

    with socket.create_server(("127.0.0.1", 0)) as slow:
        thread = threading.Thread(target=answer)
        thread.start()
        reply = post(f"{scheme}://127.0.0.1:{slow.getsockname()[1]}/", b"{}", {})
        thread.join()
        held[0].close()
    assert (reply.status, reply.again) == (None, True)
    assert "within 15 seconds" in reply.problem


def test_slow_connects_share_the_limit(monkeypatch: pytest.MonkeyPatch):
    resolving(monkeypatch, ["1.1.1.1", "1.0.0.1"])
    waits: list[float] = []

    def create_connection(_: Any, wait: float) -> Any:
        waits.append(wait)
        monkeypatch.setattr(outbound.time, "monotonic", lambda: float("inf"))
        raise TimeoutError

    monkeypatch.setattr(outbound.socket, "create_connection", create_connection)
    assert post("https://slow.example/", b"", {}).again
    assert len(waits) == 1


def test_an_unknown_host_is_tried_again(monkeypatch: pytest.MonkeyPatch):
    def getaddrinfo(*_: Any, **__: Any) -> Any:
        raise socket.gaierror

    monkeypatch.setattr(outbound.socket, "getaddrinfo", getaddrinfo)
    assert post("https://nowhere.example/", b"", {}).again
