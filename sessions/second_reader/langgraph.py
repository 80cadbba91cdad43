"""LangGraph: threads are arrays of messages; streams send them in chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from sessions.second_reader.arrays import sequence
from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    answered,
    billed_whole,
    dicts,
    piece,
    pieces,
    used,
    within,
)


def read(data: bytes) -> list[Reread]:
    """Read the state of a thread, or a recorded stream."""
    if data.lstrip().startswith(b"event:"):
        return [sequence((at, *_message(one, at), None) for at, one in _streamed(data))]
    listed = dicts(within(json.loads(data), "values", "messages"))
    return [
        sequence(
            (at, *_message(one, at), _usage(one.get("usage_metadata")))
            for at, one in enumerate(listed, start=1)
        )
    ]


def _message(one: dict[str, Json], at: int) -> tuple[list[RereadPiece], bool]:
    """What a message says, and whether it is a response."""
    role = one.get("type") or one.get("role")
    if role in ("tool", "function"):
        return [answered(one.get("content"), at)], False
    content = pieces(one.get("content"), at)
    if role not in ("ai", "assistant"):
        return content, False
    more = one.get("additional_kwargs") or {}
    thought = one.get("reasoning_content") or more.get("reasoning_content")
    first = [piece("thinking", thought, at)] if thought else []
    named = {part.get("id") for part in dicts(one.get("content")) if part.get("type") == "tool_use"}
    calls = [each for each in dicts(one.get("tool_calls")) if each.get("id") not in named]
    return [*first, *content, *(used(c.get("name"), c.get("args"), at) for c in calls)], True


def _usage(counts: Json) -> Billed | None:
    """LangChain's counts; the input includes the cache."""
    cached = within(counts, "input_token_details")
    return billed_whole(
        within(counts, "input_tokens"),
        within(cached, "cache_read"),
        within(cached, "cache_creation"),
        within(counts, "output_tokens"),
    )


def _streamed(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """The messages of a stream, each with the line of its first chunk; empty ones are left out."""
    chunks: dict[str, list[tuple[int, dict[str, Json]]]] = {}
    for line, text in enumerate(data.decode("utf-8-sig").split("\n"), start=1):
        with suppress(ValueError):
            given = json.loads(text.removeprefix("data:")) if text.startswith("data:") else None
            if isinstance(given, dict):
                chunks.setdefault(str(given.get("id") or line), []).append((line, given))
    for listed in chunks.values():
        parts = [given for _, given in listed]
        whole = {name: _text(parts, name) for name in ("content", "reasoning_content")}
        calls = [one for part in parts for one in dicts(part.get("tool_calls")) if one.get("name")]
        asked = "".join(_text(dicts(part.get("tool_call_chunks")), "args") for part in parts)
        if asked and len(calls) == 1:
            calls = [{**calls[0], "args": asked}]
        role = "tool" if "tool_call_id" in parts[-1] else parts[-1].get("role") or "assistant"
        if role == "tool" or calls or any(whole.values()):
            yield listed[0][0], {**whole, "tool_calls": calls, "role": role}


def _text(parts: list[dict[str, Json]], name: str) -> str:
    return "".join(str(part.get(name) or "") for part in parts)
