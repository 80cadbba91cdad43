"""A provider on this machine: speaks Gemini's API, and refuses what it must.

Calls have ids and signatures, as those of Gemini 3; with `call=""` no id, as before.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.gemini_rules import gemini as problems

Json = dict[str, Any]
Reply = list[Json] | Callable[[], list[Json]]
"""The parts of an answer, or what makes them once a request has come."""

SIGNATURE = base64.b64encode(b"all of the answer").decode()
"""What a streamed answer ends with, beside an empty text."""


def Says(text: str) -> list[Json]:
    """An answer of one text."""
    return [{"text": text}]


def Calls(name: str, call: str = "", **given: Any) -> list[Json]:
    """An answer that calls a function."""
    signature = base64.b64encode(f"thought of {name} {given}".encode()).decode()
    known = {"id": call} if call else {}
    made = {**known, "name": name, "args": given}
    return [{"functionCall": made, "thoughtSignature": signature}]


@dataclass
class GeminiProvider:
    """Where it is, what it was asked, and what it answers; `refused` says what broke the rules."""

    url: str = ""
    bodies: list[Json] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _next: deque[Reply] = field(default_factory=deque)

    def then(self, *answers: Reply) -> None:
        """Answer the next requests with these, in order; then "ok"."""
        self._next.extend(answers)

    def answer(self, body: Json, model: str) -> Json:
        """The answer to an accepted request."""
        self.bodies.append(body)
        made = self._next.popleft() if self._next else Says("ok")
        parts = made() if callable(made) else made
        size = len(json.dumps(body)) // 4
        usage = {"promptTokenCount": size, "cachedContentTokenCount": size // 2}
        usage |= {"candidatesTokenCount": 15, "thoughtsTokenCount": 5, "totalTokenCount": size + 20}
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": model,
            "responseId": f"r{len(self.bodies)}",
        }


@contextmanager
def gemini_provider() -> Iterator[GeminiProvider]:
    """A provider that listens on 127.0.0.1 until the block ends."""
    it = GeminiProvider()

    class Handler(_Handler):
        provider = it

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    it.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield it
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: GeminiProvider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        path, _, query = self.path.partition("?")
        if wrong := problems(body):
            self.provider.refused.append("; ".join(wrong))
            error = {"code": 400, "message": "; ".join(wrong), "status": "INVALID_ARGUMENT"}
            return self._send(json.dumps({"error": error}), 400)
        made = self.provider.answer(body, path.rpartition("/")[2].partition(":")[0])
        if "alt=sse" not in query:
            return self._send(json.dumps(made))
        [candidate] = made["candidates"]
        events = [
            {**made, "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
            for part in candidate["content"]["parts"]
        ]
        last = {"role": "model", "parts": [{"text": "", "thoughtSignature": SIGNATURE}]}
        events.append({**made, "candidates": [{**candidate, "content": last}]})
        self._send("".join(f"data: {json.dumps(one)}\r\n\r\n" for one in events))

    def _send(self, text: str, status: int = 200) -> None:
        data = text.encode()
        self.send_response(status)
        streamed = text.startswith("data:")
        self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to say on stderr."""
