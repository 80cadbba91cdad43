"""A message of the Anthropic Messages protocol, as one body and as events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A response with these content blocks, as one body or, where asked for, as events."""

    content: tuple[Json, ...]
    stop_reason: str = "end_turn"
    output_tokens: int | None = None


def encode(value: Json) -> bytes:
    return json.dumps(value).encode()


def tokens(value: Any) -> int:
    """A counting that a test can redo: a token for every four bytes of JSON."""
    return len(json.dumps(value)) // 4


def message(body: Json, answer: Answer) -> Json:
    prompt = {name: body.get(name) for name in ("tools", "system", "messages")}
    output = answer.output_tokens
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": list(answer.content),
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": tokens(prompt),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": tokens(list(answer.content)) if output is None else output,
        },
    }


def events_of(message: Json) -> Iterator[tuple[str, Json]]:
    """The events of a streamed message."""
    usage = {**message["usage"], "output_tokens": 1}
    start = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": start}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(message["content"]):
        opened, deltas = _pieces(block)
        yield "content_block_start", {
            "type": "content_block_start", "index": index, "content_block": opened
        }  # fmt: skip
        for delta in deltas:
            yield "content_block_delta", {
                "type": "content_block_delta", "index": index, "delta": delta
            }  # fmt: skip
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": message["usage"]["output_tokens"]},
        },
    )
    yield "message_stop", {"type": "message_stop"}


def _pieces(block: Json) -> tuple[Json, list[Json]]:
    """A block as it is opened, and what is added to it."""
    if block["type"] == "tool_use":
        given = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in _cut(given)]
        return {**block, "input": {}}, deltas
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": part} for part in _cut(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": part} for part in _cut(block["text"])]
        return {"type": "text", "text": ""}, deltas
    return block, []


def _cut(text: str) -> list[str]:
    size = max(1, len(text) // 5)
    return [text[start : start + size] for start in range(0, len(text), size)]
