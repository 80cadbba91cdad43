"""Inspect: each sample is an array of messages; its events tell what each response cost."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sessions.second_reader.arrays import chat, sequence
from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    billed_whole,
    dicts,
    within,
)


def read(data: bytes) -> list[Reread]:
    """Read every sample; a scorer's calls answer none of its messages."""
    return [sequence(_sample(_attached(one, one))) for one in dicts(json.loads(data)["samples"])]


def _attached(value: Json, sample: dict[str, Json]) -> Json:
    """A value with the texts that the sample stores beside its messages."""
    if isinstance(value, dict):
        return {
            n: one if n == "attachments" else _attached(one, sample) for n, one in value.items()
        }
    if isinstance(value, list):
        return [_attached(one, sample) for one in value]
    name = value.removeprefix("attachment://") if isinstance(value, str) else value
    return (sample.get("attachments") or {}).get(name, value) if name != value else value


def _sample(sample: dict[str, Json]) -> Iterator[tuple[int, list[RereadPiece], bool, Json]]:
    events = [one for one in dicts(sample.get("events")) if one.get("event") == "model"]
    outputs = [one.get("output") for one in events]
    for number, one in enumerate(dicts(sample.get("messages")), start=1):
        if not isinstance(one.get("role"), str):
            continue
        answer = next((each for each in outputs if _is_answer(each, one)), None)
        if answer is not None and one["role"] == "assistant":
            outputs.remove(answer)
        at, read, is_response, _ = chat(number, _plain(one))
        yield at, read, is_response, _usage(within(answer, "usage"))


def _is_answer(output: Json, one: dict[str, Json]) -> bool:
    said = within(output, "choices", 0, "message") or {}
    if said.get("id"):
        return bool(said["id"] == one.get("id"))
    return bool(said.get("content") == one.get("content"))


def _plain(one: dict[str, Json]) -> dict[str, Json]:
    """A message as chat completions have it."""
    content = one.get("content")
    if isinstance(content, list):
        content = [_part(part) for part in dicts(content)]
    calls = [
        {"function": {"name": call.get("function"), "arguments": call.get("arguments")}}
        for call in dicts(one.get("tool_calls"))
    ]
    failed = within(one, "error", "message") if one["role"] == "tool" else None
    return {"role": one["role"], "content": content or failed, "tool_calls": calls}


def _part(part: dict[str, Json]) -> Json:
    if part.get("type") == "reasoning":
        return {"type": "thinking", "thinking": part.get("reasoning")}
    return part


def _usage(counts: Json) -> Billed | None:
    """Counts whose total tells whether the input includes the cache."""
    given, output = within(counts, "input_tokens") or 0, within(counts, "output_tokens") or 0
    read = within(counts, "input_tokens_cache_read") or 0
    written = within(counts, "input_tokens_cache_write") or 0
    includes = within(counts, "total_tokens") in (None, given + output)
    return billed_whole(given if includes else given + read + written, read, written, output)
