"""Chats of Gemini CLI (JSON): tool calls and their results stand in one message."""

from __future__ import annotations

from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.reported import NOTHING, Reported, openai_usage
from sessions.importers.traces.said import said_in
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "gemini-cli"


def recognises(value: Json) -> bool:
    """Whether a document is a chat of Gemini CLI."""
    given = mapping(value)
    return "sessionId" in given and "projectHash" in given


def read(data: bytes, name: str = "") -> Log:
    """Read a chat; what the client showed the user is skipped."""
    given = mapping(document(data, "a chat of Gemini CLI"))
    writer = ArraySession("gemini-cli")
    for index, item in enumerate(map(mapping, sequence(given.get("messages"))), start=1):
        form = string(item.get("type"))
        at = milliseconds(item.get("timestamp"))
        if form == "user":
            blocks = [block for one in said_in(_user(item)) for block in one.blocks]
            writer.message(Message("user", blocks, at=at, human=bool(blocks), line=index))
        elif form == "gemini":
            _answer(writer, item, index, at)
        elif form in {"info", "error", "warning", "about", "help", "stats", "quit"}:
            writer.skipped.append(Skipped(index, form, "not context"))
        else:
            writer.no_message(index)
    return writer.log(FORMAT, {"id": given.get("sessionId"), "title": ""}, name)


def _user(item: dict[str, Json]) -> Json:
    content = item.get("content")
    return {"role": "user", "parts": content} if isinstance(content, list) else content


def _answer(writer: ArraySession, item: dict[str, Json], index: int, at: int | None) -> None:
    blocks: list[Block] = [
        {"type": "thinking", "thinking": f"{one.get('subject', '')}\n{one.get('description', '')}"}
        for one in map(mapping, sequence(item.get("thoughts")))
    ]
    if text := string(item.get("content")):
        blocks.append(text_block(text))
    results: list[Block] = []
    for place, call in enumerate(map(mapping, sequence(item.get("toolCalls")))):
        called = string(call.get("id")) or f"call-{index}.{place}"
        used = {"type": "tool_use", "id": called, "name": string(call.get("name"))}
        blocks.append({**used, "input": mapping(call.get("args"))})
        if call.get("result") is not None or call.get("resultDisplay") is not None:
            results.append(_result(call, called))
    raw = item.get("tokens")
    message = Message("assistant", blocks, at=at, line=index)
    writer.response(message, _usage(mapping(raw)), model=string(item.get("model")), raw=raw)
    if results:
        writer.message(Message("tool", results, at=at, line=index))


def _result(call: dict[str, Json], called: str) -> Block:
    """What the model received; `resultDisplay` is for the screen and serves if that is missing."""
    parts = [
        block["content"]
        for one in said_in({"role": "tool", "parts": call.get("result")})
        for block in one.blocks
        if isinstance(block.get("content"), str)
    ]
    text = "\n".join(parts) or string(call.get("resultDisplay"))
    error = string(call.get("status")) in {"error", "cancelled"}
    return {"type": "tool_result", "tool_use_id": called, "content": text, "is_error": error}


def _usage(raw: dict[str, Json]) -> Reported:
    """Tokens as a chat-completions object; thoughts are billed as output, and beside it here."""
    if not raw:
        return NOTHING
    counts = {name: value for name, value in raw.items() if isinstance(value, int)}
    return openai_usage(
        {
            "prompt_tokens": counts.get("input", 0) + counts.get("tool", 0),
            "prompt_cache_hit_tokens": counts.get("cached", 0),
            "completion_tokens": counts.get("output", 0) + counts.get("thoughts", 0),
            "reasoning_output_tokens": counts.get("thoughts", 0),
            **({"total_tokens": counts["total"]} if counts.get("total") else {}),
        }
    )


IMPORTER = Importer(
    name=FORMAT,
    order=56,
    title="Gemini CLI",
    files="chats (`session-*.json`)",
    recognised_by="`sessionId` next to `projectHash`",
    read=read,
    knows_document=recognises,
    folder="~/.gemini/tmp",
)
