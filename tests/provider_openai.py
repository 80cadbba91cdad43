"""A provider on this machine: speaks OpenAI's APIs, and refuses what it must.

with openai_provider() as it:
    client = openai.OpenAI(api_key="test", base_url=it.url + "/v1", max_retries=0)
    it.then(Says("ok"), Calls("read_back", ref="m1.0"))     # answers in order; then `it.answer`
    ...
    it.bodies[-1]["input"]                                  # what was asked
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.openai_rules import openai as chat_problems
from tests.responses_rules import responses as problems

Json = dict[str, Any]


@dataclass(frozen=True)
class Refuses:
    """An error of the API."""

    status: int
    message: str = "it did not work"


Reply = list[Json] | Refuses
"""Items of an answer, or an error."""


def Says(text: str) -> Reply:
    """An answer of one text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return [{"type": "message", "role": "assistant", "status": "completed", "content": [part]}]


def Calls(name: str, call: str = "", **given: Any) -> Reply:
    """An answer that reasons and calls a tool; chat completions show a `summary`, if any."""
    known = {"type": "function_call", "name": name, "status": "completed"}
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    return [thought, {**known, "call_id": call, "arguments": json.dumps(given)}]


@dataclass
class OpenAIProvider:
    """Where it is, what it was asked, and what it answers.

    A request that breaks the rules gets 400 with the reason, kept in `refused`.
    """

    url: str = ""
    answer: Callable[[Json], Reply] = lambda body: Says("ok")
    bodies: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _next: deque[Reply] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def then(self, *replies: Reply) -> None:
        """Answer the next requests with these, in order."""
        self._next.extend(replies)

    def reply(self, body: Json) -> tuple[int, Reply]:
        """The number of an accepted request, and its answer with ids."""
        with self._lock:
            self.bodies.append(body)
            number = len(self.bodies)
            made = self._next.popleft() if self._next else self.answer(body)
        if isinstance(made, list):
            ids = {"message": "msg", "reasoning": "rs", "function_call": "fc",
                   "custom_tool_call": "ctc"}  # fmt: skip
            made = [{"id": f"{ids[item['type']]}_{number}", **item} for item in made]
            for item in made:
                if "call_id" in item:
                    item["call_id"] = item["call_id"] or f"call_{number}"
        return number, made


@contextmanager
def openai_provider(port: int = 0) -> Iterator[OpenAIProvider]:
    """A provider that listens on 127.0.0.1 until the block ends."""
    it = OpenAIProvider()

    class Handler(_Handler):
        provider = it

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
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
    provider: OpenAIProvider

    def do_GET(self) -> None:
        self._json({"object": "list", "data": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.provider.headers.append({name.lower(): one for name, one in self.headers.items()})
        body, chat = json.loads(data), self.path.partition("?")[0].endswith("/chat/completions")
        if not chat and isinstance(body.get("input"), str):
            body["input"] = [{"role": "user", "content": body["input"]}]
        continued = body.get("previous_response_id")
        if wrong := chat_problems(body) if chat else [] if continued else problems(body):
            self.provider.refused.append("; ".join(wrong))
            return self._error(Refuses(400, "; ".join(wrong)))
        number, reply = self.provider.reply(body)
        if isinstance(reply, Refuses):
            return self._error(reply)
        size = len(data) // 4
        if chat:
            made, events = _chat(body, number, reply, size)
        else:
            made, events = _response(body, number, reply, size)
        if body.get("stream"):
            self._stream(events)
        else:
            self._json(made)

    def _stream(self, events: list[Json]) -> None:
        named = [f"event: {one['type']}\n" if "type" in one else "" for one in events]
        lines = [
            f"{name}data: {json.dumps(one)}\n\n" for name, one in zip(named, events, strict=True)
        ]
        if "type" not in events[0]:
            lines.append("data: [DONE]\n\n")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line.encode()), line.encode()))
        self.wfile.write(b"0\r\n\r\n")

    def _error(self, given: Refuses) -> None:
        error = {"message": given.message, "type": "invalid_request_error", "code": None}
        self._json({"error": error}, given.status)

    def _json(self, value: Json, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to say on stderr."""


def _response(body: Json, number: int, items: list[Json], size: int) -> tuple[Json, list[Json]]:
    usage = {
        "input_tokens": size,
        "input_tokens_details": {"cached_tokens": size // 2},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": size + 20,
    }
    known = {"id": f"resp_{number}", "object": "response", "model": body["model"]}
    more = {"created_at": 1, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    made = {**known, **more, "status": "completed", "output": items, "usage": usage}
    begun = {**made, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for at, item in enumerate(items):
        of = {"output_index": at, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": at,
                       "item": {**item, **({"content": []} if "content" in item else {}),
                                **({"arguments": ""} if "arguments" in item else {})}})  # fmt: skip
        for part in item.get("content") or ():
            place = {**of, "content_index": 0}
            events += [
                {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
                {"type": "response.output_text.delta", **place, "delta": part["text"]},
                {"type": "response.output_text.done", **place, "text": part["text"]},
                {"type": "response.content_part.done", **place, "part": part},
            ]
        if "arguments" in item:
            form = "response.function_call_arguments"
            events.append({"type": f"{form}.delta", **of, "delta": item["arguments"]})
            events.append({"type": f"{form}.done", **of, "arguments": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    events.append({"type": "response.completed", "response": made})
    return made, [{**one, "sequence_number": at} for at, one in enumerate(events)]


def _chat(body: Json, number: int, items: list[Json], size: int) -> tuple[Json, list[Json]]:
    usage = {
        "prompt_tokens": size,
        "prompt_tokens_details": {"cached_tokens": size // 2},
        "completion_tokens": 20,
        "total_tokens": size + 20,
    }
    texts = [one["content"][0]["text"] for one in items if one["type"] == "message"]
    calls = [
        {"id": one["call_id"], "type": "function",
         "function": {"name": one["name"], "arguments": one["arguments"]}}
        for one in items if one["type"] == "function_call"
    ]  # fmt: skip
    message: Json = {"role": "assistant", "content": "".join(texts) or None}
    reason = "tool_calls" if calls else "stop"
    known = {"id": f"chatcmpl-{number}", "created": 1, "model": body["model"]}
    message |= {"tool_calls": calls} if calls else {}
    thoughts = [part["text"] for one in items for part in one.get("summary") or ()]
    message |= {"reasoning_content": thoughts[0]} if thoughts else {}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    made = {**known, "object": "chat.completion", "choices": [choice], "usage": usage}
    deltas: list[Json] = [
        {"role": "assistant", "content": ""},
        *({"reasoning_content": one} for one in thoughts),
        *({"content": one} for one in texts),
    ]
    for at, call in enumerate(calls):
        begins = {**call, "index": at, "function": {**call["function"], "arguments": ""}}
        rest = {"index": at, "function": {"arguments": call["function"]["arguments"]}}
        deltas += [{"tool_calls": [begins]}, {"tool_calls": [rest]}]
    known["object"] = "chat.completion.chunk"
    chunks = [{**known, "choices": [{"index": 0, "delta": one, "finish_reason": None}]}
              for one in deltas]  # fmt: skip
    chunks.append({**known, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if (body.get("stream_options") or {}).get("include_usage"):
        chunks.append({**known, "choices": [], "usage": usage})
    return made, chunks
