"""Limits on request bodies, enforced while they are received, before authentication."""

import io
import json
import logging
from typing import Any

import daphne.server  # must come first: installs the reactor
from daphne.http_protocol import HTTPFactory, WebRequest
from django.conf import settings
from twisted.internet import reactor

log = logging.getLogger(__name__)

# How long to discard the rest of a refused request: closing at once would reset the connection
# before the client reads the response.
DRAIN_SECONDS = 5


class LimitedRequest(WebRequest):
    """A request whose body is limited to BODY_LIMIT (UPLOAD_LIMIT below UPLOAD_PATHS) and must
    arrive within BODY_SECONDS."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Django parses forms in its thread: on the loop, 10 MB of "&" would block all pages for 13
        # s.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self._refused = False
        self._taken = 0
        self._limit = settings.BODY_LIMIT
        self._deadline = reactor.callLater(settings.BODY_SECONDS, self._too_slow)

    def gotLength(self, length: int | None) -> None:
        """After the headers: refuse a body whose declared length is too large."""
        path = self.channel._path.decode("latin-1")
        if path.startswith(settings.UPLOAD_PATHS):
            self._limit = settings.UPLOAD_LIMIT
        if length is not None and length > self._limit:
            self.content = io.BytesIO()
            self._too_large()
        else:
            super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        """Count the bytes of a chunked body."""
        self._taken += len(data)
        if self._refused:
            return
        if self._taken > self._limit:
            self._too_large()
        else:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The body is complete: pass the request to the application."""
        self._stop_clock()
        if self._refused:
            self._close()
        else:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:
        """The client disconnected."""
        self._stop_clock()
        super().connectionLost(reason)

    def _too_large(self) -> None:
        megabytes = self._limit / (1024 * 1024)
        self._refuse(
            413,
            "Content Too Large",
            f"The body exceeds {megabytes:.3g} MB. Split it into several requests.",
        )

    def _too_slow(self) -> None:
        self._refuse(
            408,
            "Request Timeout",
            f"The request did not arrive within {settings.BODY_SECONDS:g} seconds. Send it again.",
        )

    def _refuse(self, status: int, title: str, detail: str) -> None:
        log.warning("request refused: %s after %s bytes", status, self._taken)
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
    """HTTP factory that limits the size of requests."""

    def buildProtocol(self, addr: Any) -> Any:
        """A connection with limited requests."""
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = LimitedRequest
        return protocol


class LimitedServer(daphne.server.Server):
    """Daphne with limits, and a shutdown that tolerates half-read requests."""

    def run(self) -> None:
        """Serve until stopped."""
        # Daphne's run() creates its factory without a way to pass another.
        daphne.server.HTTPFactory = LimitedFactory
        super().run()

    def kill_all_applications(self) -> Any:
        """Cancel requests in progress, except those still arriving, which have nothing to
        cancel."""
        self.connections: dict[Any, dict[str, Any]] = {
            protocol: details
            for protocol, details in self.connections.items()
            if "application_instance" in details
        }
        return super().kill_all_applications()
