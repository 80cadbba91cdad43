"""A provider on this machine: speaks the Anthropic Messages protocol, and refuses what it must.

with provider() as it:
    client = anthropic.Anthropic(api_key="test", base_url=it.url, max_retries=0)
    it.then(Overloaded(), Text("a summary"))      # answers in order; then `it.answer` again
    ...
    it.bodies[-1]["messages"]                     # what was asked
"""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests import provider_system
from tests.provider_binding import BETA, Bindings
from tests.provider_messages import Answer, Json, encode, events_of, message, tokens
from tests.provider_rules import anthropic as problems


def Text(text: str, stop_reason: str = "end_turn") -> Answer:
    """A response of one text block; an empty text gives a response without blocks."""
    return Answer(({"type": "text", "text": text},) if text else (), stop_reason)


def Refusal() -> Answer:
    """A response that the model declined to give."""
    return Answer((), "refusal")


@dataclass(frozen=True)
class Failure:
    """An error of the API, with seconds after which to try again where it says so."""

    status: int
    kind: str
    message: str = "it did not work"
    retry_after: int | None = None


def RateLimited(retry_after: int = 1) -> Failure:
    """429."""
    return Failure(429, "rate_limit_error", "too many requests", retry_after)


def Overloaded() -> Failure:
    """529."""
    return Failure(529, "overloaded_error", "overloaded")


@dataclass(frozen=True)
class Broken:
    """The answer's bytes up to this share of them, and then the connection is cut."""

    answer: Answer
    share: float = 0.5


@dataclass(frozen=True)
class ErrorInStream:
    """A stream that begins well and then brings an error event."""

    answer: Answer
    kind: str = "overloaded_error"


@dataclass(frozen=True)
class Raw:
    """Any bytes at all, such as a proxy's page."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    encoding: str = ""


@dataclass(frozen=True)
class Silence:
    """Nothing, until the provider is closed."""


Reply = Answer | Failure | Broken | ErrorInStream | Raw | Silence


@dataclass
class Provider:
    """What a test sees of the provider: where it is, what it was asked, what it answers.

    A request that breaks the rules gets 400 with the reason, kept in `refused`; no prepared
    answer is used up by it.
    """

    url: str = ""
    answer: Callable[[Json], Reply] = lambda body: Text("ok")
    bodies: list[Json] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    bindings: Bindings = field(default_factory=Bindings)
    _next: deque[Reply] = field(default_factory=deque)
    _closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def then(self, *replies: Reply) -> None:
        """Answer the next requests with these, in order."""
        self._next.extend(replies)

    def reply(self, body: Json) -> Reply:
        """The answer to an accepted request."""
        with self._lock:
            self.bodies.append(body)
            reply = self._next.popleft() if self._next else self.answer(body)
            if isinstance(reply, Answer):
                self.bindings.note(body, list(reply.content))
            return reply

    def bound(self, body: Json, betas: str) -> str:
        """Why the thinking of a request is refused; if it may be dropped instead, that is noted."""
        said = body.get("thinking", {}).get("block_binding")
        if said is not None and BETA not in betas.split(","):
            return "thinking.block_binding: Extra inputs are not permitted"
        invalid = self.bindings.invalid(body)
        if invalid and said == {"prefix_mismatch_behavior": "drop_block"}:
            self.dropped += invalid
            return ""
        return f"{invalid[0]}: The block is bound to a different conversation" if invalid else ""


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that listens on 127.0.0.1 until the block ends."""
    it = Provider()

    class Handler(_Handler):
        provider = it

    server = _Server(("127.0.0.1", 0), Handler)
    it.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield it
    finally:
        it._closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


_OF_CLOUDS = re.compile(r"/model/([^/]+)/invoke$|/models/([^/:]+):(?:stream)?[rR]awPredict$")
"""Addresses of a model at Bedrock and Vertex AI; without Bedrock's streams, which are binary."""


class _Server(ThreadingHTTPServer):
    # Clients keep connections open; do not wait for their threads.
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if cloud := _OF_CLOUDS.search(self.path):
            body = {**json.loads(data), "model": cloud[1] or cloud[2]}
            self.headers["anthropic-version"] = body.pop("anthropic_version")
            self.path, data = "/v1/messages", encode(body)
        if self.path.partition("?")[0] not in ("/v1/messages", "/v1/messages/count_tokens"):
            return self._fail(Failure(404, "not_found_error", self.path))
        if not (self.headers.get("x-api-key") or self.headers.get("Authorization")):
            return self._fail(Failure(401, "authentication_error", "x-api-key header is required"))
        try:
            body = json.loads(data)
        except ValueError:
            return self._fail(Failure(400, "invalid_request_error", "the body is no JSON"))
        counting = self.path.startswith("/v1/messages/count_tokens")
        if wrong := self._wrong({"max_tokens": 1, **body} if counting else body):
            self.provider.refused.append(wrong)
            return self._fail(Failure(400, "invalid_request_error", wrong))
        if counting:
            return self._json({"input_tokens": tokens(body)})
        self._give(body, self.provider.reply(body))

    def _wrong(self, body: Any) -> str:
        if not self.headers.get("anthropic-version"):
            return "anthropic-version: header is required"
        if not isinstance(body, dict):
            return "an object is required"
        betas = self.headers.get("anthropic-beta") or ""
        wrong = problems(body) or provider_system.wrong(body, betas)
        return "; ".join(wrong) or self.provider.bound(body, betas)

    def _give(self, body: Json, reply: Reply) -> None:
        if isinstance(reply, Failure):
            self._fail(reply)
        elif isinstance(reply, Raw):
            self._bytes(reply.body, reply.content_type, reply.status, encoding=reply.encoding)
        elif isinstance(reply, Silence):
            self.provider._closing.wait()
            self.close_connection = True
        elif isinstance(reply, Answer) and not body.get("stream"):
            self._json(message(body, reply))
        elif isinstance(reply, Broken) and not body.get("stream"):
            self._bytes(encode(message(body, reply.answer)), "application/json", 200, reply.share)
        else:
            self._stream(body, reply)

    def _stream(self, body: Json, reply: Answer | Broken | ErrorInStream) -> None:
        answer = reply if isinstance(reply, Answer) else reply.answer
        events = list(events_of(message(body, answer)))
        if isinstance(reply, ErrorInStream):
            error = {"type": reply.kind, "message": "it stopped"}
            events = [*events[: len(events) // 2], ("error", {"type": "error", "error": error})]
        if isinstance(reply, Broken):
            events = events[: int(len(events) * reply.share)]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, value in events:
            data = f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if isinstance(reply, Broken):
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _fail(self, failure: Failure) -> None:
        error = {"type": failure.kind, "message": failure.message}
        value = {"type": "error", "error": error, "request_id": "req_test"}
        self._bytes(
            encode(value), "application/json", failure.status, retry_after=failure.retry_after
        )

    def _json(self, value: Json) -> None:
        self._bytes(encode(value), "application/json", 200)

    def _bytes(
        self,
        data: bytes,
        content_type: str,
        status: int,
        share: float = 1,
        retry_after: int | None = None,
        encoding: str = "",
    ) -> None:
        self.send_response(status)
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("request-id", "req_test")
        if retry_after is not None:
            self.send_header("retry-after", str(retry_after))
        self.end_headers()
        self.wfile.write(data[: int(len(data) * share)])
        self.close_connection = share < 1

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to say on stderr."""
