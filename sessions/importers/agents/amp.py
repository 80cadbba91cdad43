"""Threads of Amp (JSON)."""

from __future__ import annotations

import json

from compaction.context.blocks import Role
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message
from sessions.importers.reported import NOTHING, Reported, anthropic_usage, openai_usage
from sessions.importers.wire import (
    Block,
    blocks_of,
    has_type,
    is_said_in,
    mapping,
    milliseconds,
    sequence,
    string,
)

FORMAT = "amp"

_SHOWN = ("output", "content", "diff")
"""Where a tool's result has its text: commands, readings, edits."""


def recognises(value: Json) -> bool:
    """Whether a document is a thread: its id begins with T-."""
    given = mapping(value)
    return string(given.get("id")).startswith("T-") and isinstance(given.get("messages"), list)


def read(data: bytes, name: str = "") -> Log:
    """Read a thread; each answer is a model call, with its usage if the thread has it."""
    given = mapping(document(data, "a thread of Amp"))
    writer = ArraySession("amp")
    for index, item in enumerate(map(mapping, sequence(given.get("messages"))), start=1):
        blocks = [_block(one) for one in blocks_of(item.get("content"))]
        usage = mapping(item.get("usage"))
        at = milliseconds(usage.get("timestamp"))
        at = at if at is not None else milliseconds(mapping(item.get("meta")).get("sentAt"))
        if item.get("role") == "assistant":
            message = Message("assistant", blocks, at=at, line=index)
            model = string(usage.get("model"))
            writer.response(message, _usage(usage, model), model=model, raw=usage)
        elif item.get("role") == "user":
            results = has_type(blocks, "tool_result")
            human = not results and any(map(is_said_in, blocks))
            role: Role = "tool" if results else "user"
            writer.message(Message(role, blocks, at=at, human=human, line=index))
        else:
            writer.no_message(index)
    return writer.log(FORMAT, given, name)


def _block(block: Block) -> Block:
    if block.get("type") == "tool_use":
        return {name: block.get(name) for name in ("type", "id", "name", "input")}
    if block.get("type") != "tool_result" or "tool_use_id" in block:
        return block
    run = mapping(block.get("run"))
    status = string(run.get("status")) or string(block.get("status"))
    failed = status in {"error", "cancelled"}
    found = run.get("result", block.get("output"))
    if found is None and failed:
        found = string(mapping(run.get("error")).get("message")) or status
    called = string(block.get("toolUseID"))
    made: Block = {"type": "tool_result", "tool_use_id": called, "content": _text(found)}
    return {**made, "is_error": True} if failed else made


def _text(found: Json) -> str:
    """A result as text: what the thread shows of it, else its JSON."""
    if found is None or isinstance(found, str):
        return found or ""
    shown = next((v for n in _SHOWN if isinstance(v := mapping(found).get(n), str)), None)
    return shown if shown is not None else json.dumps(found, ensure_ascii=False)


def _usage(raw: dict[str, Json], model: str) -> Reported:
    """Usage in Anthropic's or OpenAI's form; OpenAI's models count uncached tokens as writes."""
    if not raw:
        return NOTHING
    names = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")
    counts = [value if isinstance(value := raw.get(name), int) else 0 for name in names]
    uncached, written, cached, output = counts
    if model.startswith("gpt-"):
        prompt = uncached + written + cached
        return openai_usage(
            {
                "prompt_tokens": prompt,
                "prompt_cache_hit_tokens": cached,
                "completion_tokens": output,
            }
        )
    return anthropic_usage(
        {
            "input_tokens": uncached,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": cached,
            "output_tokens": output,
        }
    )


IMPORTER = Importer(
    name=FORMAT,
    order=61,
    title="Amp",
    files="threads (`T-*.json`)",
    recognised_by="an `id` that begins with T-, next to `messages`",
    read=read,
    knows_document=recognises,
    folder="~/.local/share/amp/threads",
)
