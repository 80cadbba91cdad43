"""Limits at the door: Daphne takes in a whole body before anybody is asked who sent it."""

import io
import json
import logging
from typing import Any

import daphne.server  # first: installs the reactor
from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.internet import reactor

log = logging.getLogger(__name__)

# After a refusal the rest is thrown away for so long: closing at once would reset the
# connection, and the sender would never read why.
DRAIN_SECONDS = 5


class LimitedRequest(WebRequest):
    """A request whose body may not be larger than BODY_LIMIT (UPLOAD_LIMIT below UPLOAD_PATHS)
    and which must arrive within BODY_SECONDS."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refused = False
        self._taken = 0
        self._limit = settings.BODY_LIMIT
        self._deadline = reactor.callLater(settings.BODY_SECONDS, self._too_slow)

    def gotLength(self, length: int | None) -> None:
        """Headers are in: refuses a body that says it is too large."""
        path = self.channel._path.decode("latin-1")
        if path.startswith(settings.UPLOAD_PATHS):
            self._limit = settings.UPLOAD_LIMIT
        if length is not None and length > self._limit:
            self.content = io.BytesIO()
            self._too_large()
        else:
            super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        """Counts what a chunked body does not say beforehand."""
        self._taken += len(data)
        if self._refused:
            return
        if self._taken > self._limit:
            self._too_large()
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The body is complete: the application may see it."""
        self._stop_clock()
        if self._refused:
            self._close()
        else:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:
        """The other side went away."""
        self._stop_clock()
        super().connectionLost(reason)

    def _too_large(self) -> None:
        megabytes = self._limit / (1024 * 1024)
        self._refuse(
            413,
            "Content Too Large",
            f"The body may have {megabytes:.3g} MB at most. Send it in several requests.",
        )

    def _too_slow(self) -> None:
        self._refuse(
            408,
            "Request Timeout",
            f"The request did not arrive within {settings.BODY_SECONDS:g} seconds.",
        )

    def _refuse(self, status: int, title: str, detail: str) -> None:
        log.warning("refused a request: %s after %s bytes", status, self._taken)
        self._refused = True
        self._stop_clock()
        problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        body = json.dumps(problem).encode()
        transport = self.channel.transport
        transport.write(
            f"HTTP/1.1 {status} {title}\r\nContent-Type: application/problem+json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
            + body
        )
        transport.loseWriteConnection()
        self._deadline = reactor.callLater(DRAIN_SECONDS, self._close)

    def _stop_clock(self) -> None:
        if self._deadline.active():
            self._deadline.cancel()

    def _close(self) -> None:
        if self.channel is not None and self.channel.transport is not None:
            self.channel.transport.abortConnection()


class LimitedFactory(HTTPFactory):
    """Makes every connection count its bytes."""

    def buildProtocol(self, addr: Any) -> Any:
        """A connection whose requests are limited ones."""
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = LimitedRequest
        return protocol


class LimitedServer(daphne.server.Server):
    """Daphne with limits, and with an end that does not stumble over half-read requests."""

    def run(self) -> None:
        """Serves until it is stopped."""
        # Daphne's run() makes the factory itself and asks nobody which.
        daphne.server.HTTPFactory = LimitedFactory
        super().run()

    def kill_all_applications(self) -> Any:
        """Cancels what is being answered; requests still arriving have nothing to cancel."""
        self.connections: dict[Any, dict[str, Any]] = {
            protocol: details
            for protocol, details in self.connections.items()
            if "application_instance" in details
        }
        return super().kill_all_applications()
