"""POST to an address that a user chose, without giving them the server's own network.

The host is resolved once, every address is checked, and the connection goes to a checked address:
a name that resolves differently a moment later changes nothing. Redirects and proxies are not
followed. Only operators allow private networks (CONTEXTLAB_WEBHOOK_NETWORKS).
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

CONNECT_SECONDS = 5.0
"""Time limit of each wait for the network."""

ALL_SECONDS = 15.0
"""Time limit of a whole request, however slowly it is answered."""

ADDRESSES = 4
"""Addresses of a host that are tried."""

ADDRESS_CHARS = 500
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""IPv6 networks that lead to IPv4 addresses (RFC 6052, RFC 8215)."""


class InvalidAddress(ValueError):
    """What is wrong with an address, as a sentence."""


@dataclass(frozen=True, slots=True)
class Reply:
    """How a request went: `status` is None without an answer; `problem` is empty after success.

    `again`: another attempt may succeed.
    """

    status: int | None
    problem: str = ""
    again: bool = False


def check_address(text: str) -> SplitResult:
    """Check an address as far as possible without the network. Raises InvalidAddress."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidAddress("This is not a valid URL.") from None
    if len(text) > ADDRESS_CHARS or not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidAddress(
            f"Use a URL of at most {ADDRESS_CHARS} printable ASCII characters, without spaces."
        )
    if parts.scheme not in ("https", "http") or not host:
        raise InvalidAddress("Use a URL that begins with https://.")
    if "@" in parts.netloc:
        raise InvalidAddress("Remove user name and password from the URL.")
    try:
        _check(ip_address(host), parts.scheme)
    except InvalidAddress:
        raise
    except ValueError:  # a name: it is resolved when something is sent
        if parts.scheme == "http" and not settings.WEBHOOK_NETWORKS:
            raise InvalidAddress(_NOT_ENCRYPTED) from None
    return parts


_NOT_ENCRYPTED = (
    "Use https://. Plain http:// is for networks that the operator allows "
    "(CONTEXTLAB_WEBHOOK_NETWORKS)."
)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is in the public internet, and does not lead to one that is not."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_public(inner)
        if address.teredo is not None or any(address in net for net in _TRANSLATED):
            return False
        if int(address) >> 32 in (0, 0xFFFF << 16):  # IPv4-compatible, and -translated
            return False
    return address.is_global and not address.is_multicast


def _check(address: IPv4Address | IPv6Address, scheme: str) -> None:
    plain = getattr(address, "ipv4_mapped", None) or address
    if any(plain in network for network in settings.WEBHOOK_NETWORKS):
        return
    if not is_public(address):
        raise InvalidAddress(
            "The host is in a private, local or reserved network. An operator can allow it with "
            "CONTEXTLAB_WEBHOOK_NETWORKS."
        )
    if scheme == "http":
        raise InvalidAddress(_NOT_ENCRYPTED)


def resolve(host: str, port: int, scheme: str) -> list[str]:
    """The addresses of a host, all checked. Raises InvalidAddress, OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(one[4][0]) for one in found]
    for address in addresses:
        _check(ip_address(address.partition("%")[0]), scheme)
    return list(dict.fromkeys(addresses))[:ADDRESSES]


def post(url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    """POST a body once. Never raises for what the other side does."""
    deadline = time.monotonic() + ALL_SECONDS
    try:
        parts = check_address(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = resolve(parts.hostname or "", port, parts.scheme)
    except InvalidAddress as error:
        return Reply(None, str(error))
    except (OSError, UnicodeError):
        return Reply(None, "The host name could not be resolved.", again=True)
    connection = _Pinned(parts, port, addresses, deadline)
    limit = threading.Timer(max(deadline - time.monotonic(), 0), connection.abort)
    limit.daemon = True
    limit.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, dict(headers))
        status = connection.getresponse().status
        if connection.aborted:  # within the headers, which then look complete
            return Reply(None, _TOO_SLOW, again=True)
        return judged(status)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Reply(None, _TOO_SLOW if connection.aborted else _said(error), again=True)
    finally:
        limit.cancel()
        connection.close()


_TOO_SLOW = f"It did not answer completely within {ALL_SECONDS:g} seconds."


def judged(status: int) -> Reply:
    """The reply for an HTTP status: only 2xx is success."""
    if 200 <= status < 300:
        return Reply(status)
    if 300 <= status < 400:
        problem = f"It answered {status}, a redirect. Redirects are not followed: enter its target."
        return Reply(status, problem)
    again = status >= 500 or status in (408, 409, 425, 429)
    return Reply(status, f"It answered {status}.", again)


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "Its TLS certificate is not valid for this host."
    if isinstance(error, TimeoutError):
        return f"It did not answer within {CONNECT_SECONDS:g} seconds."
    if isinstance(error, ConnectionRefusedError):
        return "It refused the connection."
    return f"The request failed ({type(error).__name__})."


class _Pinned(http.client.HTTPConnection):
    """A connection to one of the checked addresses of a host."""

    def __init__(
        self, parts: SplitResult, port: int, addresses: list[str], deadline: float
    ) -> None:
        super().__init__(parts.hostname or "", port, timeout=CONNECT_SECONDS)
        # Names the port only if it is not the scheme's own.
        self.default_port = 443 if parts.scheme == "https" else 80
        self._encrypts = parts.scheme == "https"
        self._addresses = addresses
        self._deadline = deadline
        self.aborted = False

    def connect(self) -> None:
        """Connect to the first address that answers."""
        for number, address in enumerate(self._addresses, start=1):
            left = self._deadline - time.monotonic()
            if left <= 0:
                self.aborted = True
                raise TimeoutError
            try:
                wait = min(CONNECT_SECONDS, left)
                self.sock = socket.create_connection((address, self.port), wait)
                break
            except OSError:
                if number == len(self._addresses):
                    raise
        self.sock.settimeout(CONNECT_SECONDS)
        if self._encrypts:
            context = ssl.create_default_context()
            # The handshake comes after the assignment, so that `abort` ends it, too.
            self.sock = context.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()

    def abort(self) -> None:
        """End whatever the connection waits for, from another thread."""
        self.aborted = True
        if self.sock is not None:
            try:
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
            except OSError:  # it has ended
                return
