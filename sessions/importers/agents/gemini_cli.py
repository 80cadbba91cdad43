"""Chats of Gemini CLI (JSON): tool calls and their results stand in one message."""

from __future__ import annotations

from sessions.importers.gemini_wire import gemini_blocks
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message, Session, Skipped
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
            blocks = _content(item)
            writer.message(Message("user", blocks, at=at, human=bool(blocks), line=index))
        elif form == "gemini":
            _answer(writer, item, index, at)
        elif form in {"info", "error", "warning", "about", "help", "stats", "quit"}:
            writer.skipped.append(Skipped(index, form, "not context"))
        else:
            writer.no_message(index)
    log = writer.log(FORMAT, {"id": given.get("sessionId"), "title": ""}, name)
    log.problems.extend(_unknown_parts(writer.session))
    return log


def _content(item: dict[str, Json]) -> list[Block]:
    """The blocks of a content, which is text, a part, or a list of both."""
    content = item.get("content")
    listed = content if isinstance(content, list) else [content]
    return gemini_blocks([{"text": one} if isinstance(one, str) else one for one in listed])


def _unknown_parts(session: Session) -> list[str]:
    """A sentence on the parts that are shown as the log has them, empty without any."""
    found: dict[str, int] = {}
    for message in (one for one in session.records if isinstance(one, Message)):
        for block in message.blocks:
            if block.get("type") == "other":
                kind = ", ".join(sorted(name for name in block if name != "type"))
                found.setdefault(kind, message.line)
    named = "; ".join(f"{kind} (message {line})" for kind, line in found.items())
    return [f"Parts of an unknown kind, shown as the log has them: {named}."] if named else []


def _answer(writer: ArraySession, item: dict[str, Json], index: int, at: int | None) -> None:
    blocks: list[Block] = [
        {"type": "thinking", "thinking": f"{one.get('subject', '')}\n{one.get('description', '')}"}
        for one in map(mapping, sequence(item.get("thoughts")))
    ]
    blocks += _content(item)
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
    media = _media(call.get("result"))
    content: Json = [text_block(text), *media] if media else text
    error = string(call.get("status")) in {"error", "cancelled"}
    return {"type": "tool_result", "tool_use_id": called, "content": content, "is_error": error}


def _media(result: Json) -> list[Block]:
    """Images and documents of a result, which stand beside its response or in it."""
    parts = list(map(mapping, sequence(result)))
    inner = (mapping(part.get("functionResponse")).get("parts") for part in parts)
    blocks = gemini_blocks([*parts, *(one for each in inner for one in sequence(each))])
    return [block for block in blocks if block["type"] in {"image", "document"}]


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
