"""A request on its way in: health at once, its sender before its body, then its lane."""

from __future__ import annotations

import io
import logging
import math
from time import monotonic
from typing import Any

from daphne.http_protocol import WebRequest
from daphne.utils import HEADER_NAME_RE, INVALID_HEADER_VALUE_BYTES
from django.conf import settings
from twisted.internet import reactor
from twisted.web import http

from contextlab.door import answers, forwarded
from contextlab.door.callers import credentials_of
from contextlab.door.gateway import Flow, Headers, below_root
from contextlab.operations.logs import request_id
from sessions import metrics
from sessions.views.web.headers import security_headers

log = logging.getLogger(__name__)
access = logging.getLogger("contextlab.access")

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

DRAIN_SECONDS = 5
"""How long to discard the rest of a refused request: closing at once would reset the connection
before the client reads the answer."""
SMALL_BODY = 64 * 1024
"""Bytes that are read from anybody; more only from those whose credentials are valid."""
_INVALID = bytes(INVALID_HEADER_VALUE_BYTES)
_KEY_NEEDED = (
    f"A body above {SMALL_BODY >> 10} KB needs a valid key or session. Send "
    "`Authorization: Bearer clk_…`; create a key with `contextlab token create --team NAME`."
)
_KEY_UNKNOWN = (
    "The key or session is unknown, revoked or expired. Create a key with `contextlab token create "
    "--team NAME`."
)


class DoorRequest(WebRequest):
    """A request whose body is limited to BODY_LIMIT (UPLOAD_LIMIT below UPLOAD_PATHS), must arrive
    within BODY_SECONDS, and is never parsed on the event loop."""

    def __init__(self, channel: Any, *_: Any) -> None:
        # Not Daphne's: it would keep books of every request, and parse forms.
        http.Request.__init__(self, channel, parsePOSTFormSubmission=False)
        self.door = channel.factory.server.door
        self.server = channel.factory.server
        self.application_queue = None
        self._response_started = False
        self.client_addr = self.server_addr = None
        self.size = 0
        self.gone = False
        self.payer = ""
        self.refused = self._admitted = self._complete = False
        self.id, self.route = "", ""
        self._began = monotonic()
        self._limit = settings.BODY_LIMIT
        self.door.arriving[self] = reactor.seconds() + settings.BODY_SECONDS

    # Headers and body

    def parseCookies(self) -> None:
        """Django parses them."""

    def gotLength(self, length: int | None) -> None:
        """After the headers: refuse a body whose declared length is too large, and check who sends
        one that is not small."""
        forwarded.keep_trusted(self.requestHeaders, self.client.host)
        path = below_root(self.channel._path).decode("latin-1")
        if path.startswith(settings.UPLOAD_PATHS):
            self._limit = settings.UPLOAD_LIMIT
        if length is not None and length > self._limit:
            self.content = io.BytesIO()
            self._too_large()
            return
        super().gotLength(length)
        if length is not None and length > SMALL_BODY:
            self._identify()

    def handleContentChunk(self, data: bytes) -> None:
        """Count the bytes of a body, whose length a chunked one does not declare."""
        self.size += len(data)
        if self.refused:
            return
        if self.size > self._limit:
            self._too_large()
            return
        if self.size > SMALL_BODY and not self._admitted:
            self._identify()
        super().handleContentChunk(data)

    def _identify(self) -> None:
        """Read on only once the sender's credentials are known to be valid."""
        self._admitted = True  # asked once
        credentials = self.credentials()
        if credentials is None:
            self.refuse(401, _KEY_NEEDED)
        elif not self.door.known.payer(credentials):
            self.channel.transport.pauseProducing()
            self.door.identify(self, credentials, self._identified)

    def _identified(self, payer: str) -> None:
        if self.gone or self.refused or self._complete:
            return
        if payer:
            self.channel.transport.resumeProducing()
        else:
            self.refuse(401, _KEY_UNKNOWN)

    def credentials(self) -> Any:
        """The credentials in the headers, unchecked."""
        cookies = self.requestHeaders.getRawHeaders(b"Cookie") or ()
        return credentials_of(self.authorization(), cookies)

    def authorization(self) -> bytes:
        """The header of that name; empty without."""
        return (self.requestHeaders.getRawHeaders(b"Authorization") or [b""])[0]

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The body is complete: pass the request on. Arguments and forms are Django's to parse."""
        self.door.arriving.pop(self, None)
        if self.refused:
            self._close()
            return
        self.content.seek(0)
        self.method, self.uri, self.clientproto = command, path, version
        self.path = path.partition(b"?")[0]
        self._complete = True
        self.process()

    # What it asks

    def process(self) -> Any:
        """Answer, or let it wait in its lane."""
        self._began = monotonic()
        self.id = request_id((self.requestHeaders.getRawHeaders(b"X-Request-ID") or [b""])[0])
        if (fault := self._fault()) is not None:
            self.channel.persistent = 0  # a proxy may see another end of this request than we do
            self.simple(400, fault, ("Connection", "close"))
            return None
        upgrade = self.requestHeaders.getRawHeaders(b"Upgrade")
        if upgrade and upgrade[0].lower() == b"websocket":
            self.server.protocol_connected(self)
            self.server.http_factory.channels.discard(self.channel)
            return super().process()
        # Twisted closes `content` with the connection, while Django may still read it.
        self.body: Any = self.content
        self.content = None  # type: ignore[assignment]
        self.door.enter(self)
        return None

    def _fault(self) -> str | None:
        for name, values in self.requestHeaders.getAllRawHeaders():
            if not HEADER_NAME_RE.fullmatch(name):
                return "A header's name is invalid."
            if any(len(value.translate(None, _INVALID)) != len(value) for value in values):
                return "A header's value is invalid."
        if self.clientproto == b"HTTP/1.1" and not self.requestHeaders.hasHeader(b"Host"):
            return "The header Host is missing."
        if len(self.requestHeaders.getRawHeaders(b"Transfer-Encoding") or ()) > 1:
            return "The header Transfer-Encoding is there twice."
        return None if self.uri.isascii() else "The URL must be ASCII; escape other characters."

    # The answer

    def reply(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer."""
        if self.begin(status, headers, None, len(body)):
            self.write(body)
            self.end()

    def begin(
        self, status: int, headers: Headers, flow: Flow | None, length: int | None = None
    ) -> bool:
        """Send status and headers; `flow` follows the client's pace. False if it is gone."""
        if self.gone:
            return False
        self.setResponseCode(status, answers.phrase(status).encode())
        for name, value in headers:
            self.responseHeaders.addRawHeader(name.encode("latin-1"), value.encode("latin-1"))
        if length is not None and not self.responseHeaders.hasHeader(b"Content-Length"):
            self.responseHeaders.setRawHeaders(b"Content-Length", [b"%d" % length])
        self.responseHeaders.setRawHeaders(b"X-Request-ID", [self.id.encode()])
        if self.door.stopping:
            self.channel.persistent = 0
            self.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        if flow is not None:
            self.registerProducer(flow, True)
        return True

    def send(self, piece: bytes, flow: Flow) -> None:
        """Send a piece of a streamed answer."""
        flow.sent()
        if not self.gone:
            self.write(piece)

    def end(self) -> None:
        """The answer is complete."""
        if not self.gone:
            if self.producer is not None:
                self.unregisterProducer()
            self.gone = True
            http.Request.finish(self)
            self._note()

    def _note(self) -> None:
        """Count the answer, and write a line of it where that is wanted."""
        seconds = monotonic() - self._began
        method, route = self.method.decode("latin-1"), self.route or "none"
        metrics.REQUESTS.labels(method if method in _METHODS else "other", route, self.code).inc()
        metrics.REQUEST_SECONDS.labels(route).observe(seconds)
        if settings.ACCESS_LOG:
            values = {"method": method, "route": route, "status": self.code}
            values |= {
                "ms": round(seconds * 1000, 1),
                "received": self.size,
                "sent": self.sentLength,
            }
            text = " ".join(f"{name}={value}" for name, value in values.items())
            access.info("%s", text, extra={"fields": {"request": self.id, **values}})

    def simple(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        """A problem, without Django."""
        self.plain(status, answers.PROBLEM, answers.problem(status, detail), *headers)

    def plain(self, status: int, kind: str, body: bytes, *headers: tuple[str, str]) -> None:
        """An answer without Django."""
        common = (("Content-Type", kind), ("Cache-Control", "no-store"))
        self.reply(status, [*common, *headers, *security_headers()], body)

    def fail(self) -> None:
        """Django did not answer, or stopped in the middle of its answer."""
        if self.startedWriting:
            self._close()
        else:
            self.simple(500, "The server failed. Its log has the details.")

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:  # noqa: ARG002
        """Daphne's own errors, while a socket is opened."""
        self.simple(status, f"{body}.")

    # The end

    def finish(self) -> None:
        """Daphne's way to end an answer."""
        self.end()

    def connectionLost(self, reason: Any) -> None:
        """The client disconnected."""
        self.gone = True
        self.door.arriving.pop(self, None)
        self.door.forget(self)
        http.Request.connectionLost(self, reason)

    def _too_large(self) -> None:
        megabytes = self._limit / (1024 * 1024)
        self.refuse(413, f"The body exceeds {megabytes:.3g} MB. Split it into several requests.")

    def too_slow(self) -> None:
        """BODY_SECONDS have passed, or DRAIN_SECONDS after it was refused."""
        if self.refused:
            self._close()
            return
        self.refuse(
            408,
            f"The request did not arrive within {settings.BODY_SECONDS:g} seconds. Send it again.",
        )

    def turn_away(self, status: int, detail: str, seconds: float) -> None:
        """Ask the client to come back after so many seconds."""
        again = ("Retry-After", str(math.ceil(seconds)))
        if self._complete:
            self.simple(status, detail, again)
        elif not self.refused:
            self.refuse(status, detail, again)

    def refuse(self, status: int, detail: str, *headers: tuple[str, str]) -> None:
        """Answer while the request still arrives, and close the connection."""
        log.warning("request refused: %s after %s bytes", status, self.size)
        metrics.REQUESTS.labels("other", "none", status).inc()
        self.refused = True
        transport = self.channel.transport
        if status == 401:
            headers += (("WWW-Authenticate", 'Bearer realm="ContextLab"'),)
        body = answers.problem(status, detail)
        transport.write(answers.raw(status, answers.PROBLEM, body, *headers))
        transport.loseWriteConnection()
        transport.resumeProducing()  # to discard what still comes
        self.door.arriving[self] = reactor.seconds() + DRAIN_SECONDS

    def _close(self) -> None:
        if self.channel is not None and self.channel.transport is not None:
            self.channel.transport.abortConnection()
