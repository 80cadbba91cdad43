"""A provider that answers each request with a recorded reply, and what systems sent to it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


class Upstream:
    """The provider of one system: `reply` comes next, with the usage that `cache` gives for a body.

    `sent` are the bodies since the last `expect`, each with its blocks and its use of the cache;
    `seconds` is how long the provider itself took.
    """

    def __init__(self, harness: Any) -> None:
        self._harness = harness
        self.url = ""
        self.sent: list[tuple[Json, Any, Json]] = []
        self.seconds = 0.0
        self.expect({"content": []}, harness.Cache(), None)

    def expect(self, reply: Json, cache: Any, at: float | None) -> None:
        """Answer with a reply from now on, to requests of the recorded time `at` (ms)."""
        self.sent, self.seconds = [], 0.0
        self._reply, self._cache, self._at = reply, cache, at

    def message(self, data: bytes) -> Json:
        """The answer to a request."""
        body, harness = json.loads(data), self._harness
        units, marks = harness.units_of(body)
        use = self._cache.use(units, marks, harness.head_of(body), self._at)
        self.sent.append((body, units, use))
        content = self._reply["content"]
        calls = any(block.get("type") == "tool_use" for block in content)
        usage = {
            "input_tokens": use["fresh"],
            "cache_read_input_tokens": use["read"],
            "cache_creation_input_tokens": use["write"],
            "output_tokens": sum(harness.unit("assistant", one)[0].tokens for one in content),
        }
        return {
            "id": f"msg_{time.monotonic_ns()}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }


@contextmanager
def upstream(harness: Any) -> Iterator[Upstream]:
    """A provider that listens until the block ends."""
    it = Upstream(harness)

    class Handler(_Handler):
        provider = it

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    it.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield it
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Upstream

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.partition("?")[0].endswith("/v1/messages"):
            return self._give(b'{"input_tokens": 1}', "application/json")
        begun = time.perf_counter()
        message = self.provider.message(data)
        streams = json.loads(data).get("stream")
        kind = "text/event-stream" if streams else "application/json"
        made = "".join(events_of(message)) if streams else json.dumps(message)
        self.provider.seconds += time.perf_counter() - begun
        self._give(made.encode(), kind)

    def do_GET(self) -> None:
        self._give(b'{"data": []}', "application/json")

    def _give(self, data: bytes, kind: str) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
        self.wfile.write(head.encode() + data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to say."""


def events_of(message: Json) -> Iterator[str]:
    """A message as the events of a stream, each block in one delta."""
    usage = {**message["usage"], "output_tokens": 1}
    opened = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield _event("message_start", message=opened)
    for index, block in enumerate(message["content"]):
        empty, deltas = _streamed(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stopped = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    spent = {"output_tokens": message["usage"]["output_tokens"]}
    yield _event("message_delta", delta=stopped, usage=spent)
    yield _event("message_stop")


def _streamed(block: Json) -> tuple[Json, list[Json]]:
    form = block.get("type")
    if form == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if form == "tool_use":
        given = json.dumps(block.get("input"))
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": given}]
    if form == "thinking":
        thought = {"type": "thinking_delta", "thinking": block.get("thinking") or ""}
        signed = {"type": "signature_delta", "signature": block.get("signature") or ""}
        return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
    return block, []


def _event(name: str, **fields: Any) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"
