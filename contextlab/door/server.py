"""Daphne with a door: connections, sockets, and a shutdown that ends."""

from __future__ import annotations

import logging
import resource
from collections import Counter
from typing import Any

import daphne.server  # must come first: installs the reactor
from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.internet import protocol, reactor
from twisted.web.http import HTTPChannel

from contextlab.door import answers
from contextlab.door.door import FrontDoor
from contextlab.door.request import DoorRequest
from contextlab.door.stopping import DRAIN_SECONDS, until
from sessions import metrics

log = logging.getLogger(__name__)

MESSAGE_BYTES = 256 * 1024
"""The longest message that a socket takes; pages send the topics that they watch."""
GRACE_SECONDS = 1.0
"""How long a connection too many is kept, for its client to read why."""


class Channel(HTTPChannel):
    """A connection; counted until it is lost."""

    requestFactory = DoorRequest
    refused = False
    """Whether it was refused in the middle of a request's headers; the rest is discarded."""

    def connectionMade(self) -> None:
        """Open until lost, or until it becomes a socket."""
        self.factory.channels.add(self)
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:
        """The connection is gone."""
        self.factory.channels.discard(self)
        self.factory.leave(self.transport)
        super().connectionLost(reason)

    @property
    def awaited(self) -> bool:
        """Whether an answer is due, or being sent; not to a body that was refused half-way."""
        return not (self.requests and self.requests[-1].refused)

    def drain(self) -> None:
        """Close the connection after the request in progress, or now without one."""
        self.persistent = 0
        if not self.requests:
            self.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        """Parse what arrives, unless it was refused."""
        if not self.refused:
            super().dataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: ARG002
        """Refuse a header that is too long."""
        self._refuse(431, f"A header exceeds {self.MAX_LENGTH >> 10} KB.")

    def _respondToBadRequestAndDisconnect(self) -> None:
        self._refuse(400, "The request is no valid HTTP/1.1.")

    def _refuse(self, status: int, detail: str) -> None:
        self.refused = True
        self.clearLineBuffer()
        body = answers.problem(status, detail)
        self.transport.write(answers.raw(status, answers.PROBLEM, body))
        self.transport.loseWriteConnection()
        reactor.callLater(GRACE_SECONDS, self.transport.abortConnection)


class Socket(WebSocketProtocol):
    """A WebSocket; its connection is counted, too."""

    def connectionMade(self) -> None:
        """The connection has become a socket."""
        metrics.SOCKETS.inc()
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:
        """The connection is gone."""
        metrics.SOCKETS.dec()
        self.factory.server_class.http_factory.leave(self.transport)
        super().connectionLost(reason)

    def sendHttpErrorResponse(self, code: int, reason: str, responseHeaders: Any = None) -> None:  # noqa: ARG002
        """Refuse to open."""
        body = answers.problem(code, f"{reason}.")
        self.sendData(answers.raw(code, answers.PROBLEM, body))


class SocketFactory(WebSocketFactory):
    """Builds sockets; one that sends a longer message than a page would is closed."""

    protocol = Socket

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.setProtocolOptions(
            maxFramePayloadSize=MESSAGE_BYTES, maxMessagePayloadSize=MESSAGE_BYTES
        )


class RefusedConnection(protocol.Protocol):
    """Tells a connection too many to come again, and closes it."""

    def __init__(self, detail: str) -> None:
        self.detail = detail

    def connectionMade(self) -> None:
        """Answer whatever it is about to ask."""
        body = answers.problem(503, self.detail)
        self.transport.write(answers.raw(503, answers.PROBLEM, body, ("Retry-After", "5")))
        self.transport.loseWriteConnection()
        reactor.callLater(GRACE_SECONDS, self.transport.abortConnection)

    def connectionLost(self, reason: Any) -> None:  # noqa: ARG002
        """The connection is gone."""
        self.factory.leave(self.transport)


class LimitedFactory(HTTPFactory):
    """Accepts at most CONNECTIONS, and CONNECTIONS_PER_ADDRESS of them from one address."""

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.of: Counter[str] = Counter()
        self.channels: set[Channel] = set()

    def buildProtocol(self, addr: Any) -> Any:
        """A connection, or its refusal; nothing at all if even refusals are too many."""
        total, host = self.of.total(), addr.host
        if total > 2 * settings.CONNECTIONS:
            return None
        self.of[host] += 1
        metrics.CONNECTIONS.inc()
        built: Any = Channel()
        if total >= settings.CONNECTIONS:
            built = RefusedConnection("The server has too many connections. Try again later.")
        elif self.of[host] > settings.CONNECTIONS_PER_ADDRESS:
            built = RefusedConnection(f"{host} has too many connections. Close some first.")
        built.factory, built.timeOut, built.callLater = self, self.timeOut, reactor.callLater
        return built

    def leave(self, transport: Any) -> None:
        """A connection is gone."""
        host = transport.getPeer().host
        self.of[host] -= 1
        metrics.CONNECTIONS.dec()
        if self.of[host] <= 0:
            del self.of[host]

    def log(self, request: Any) -> None:
        """No access log: Twisted would format a line per request, and drop it."""


class LimitedServer(daphne.server.Server):
    """Daphne with limits, and a shutdown that waits for requests until a deadline."""

    def run(self) -> None:
        """Serve until stopped."""
        # Daphne's run() creates its factories without a way to pass others.
        daphne.server.HTTPFactory = LimitedFactory
        daphne.server.WebSocketFactory = SocketFactory
        raise_file_limit()
        self.door = FrontDoor()
        self.door.start()
        super().run()

    def listen_success(self, port: Any) -> None:
        """Keep the port, to stop listening."""
        super().listen_success(port)
        self.port = port

    def drain(self) -> Any:
        """Take no more connections and requests; a Deferred that fires when those in progress are
        answered, or may wait no longer."""
        self.port.stopListening()
        self.door.drain()
        for channel in list(self.http_factory.channels):
            channel.drain()
        return until(lambda: not any(one.awaited for one in self.http_factory.channels))

    def kill_all_applications(self) -> Any:
        """Cancel the applications of sockets. Connections that are about to become one have
        none."""
        self.connections: dict[Any, dict[str, Any]] = {
            protocol: details
            for protocol, details in self.connections.items()
            if "application_instance" in details
        }
        killed = super().kill_all_applications().addTimeout(DRAIN_SECONDS, reactor)
        return killed.addErrback(lambda _: None)


def raise_file_limit() -> None:
    """Allow as many open files as the system lets us: each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
