"""Chats of Gemini CLI (JSON, JSONL): tool calls and their results stand in one message."""

from __future__ import annotations

from collections.abc import Iterable

from sessions.importers.decoded import Faults, lines
from sessions.importers.gemini_wire import gemini_blocks
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.records import Json, Log, Message, Session, Skipped
from sessions.importers.reported import NOTHING, Reported, openai_usage
from sessions.importers.traces.said import said_in
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string, text_block

FORMAT = "gemini-cli"

_SET_UP = "<session_context>"
"""How the message begins with which the client sets up a chat."""


def recognises(value: Json) -> bool:
    """Whether a document is a chat of Gemini CLI."""
    given = mapping(value)
    return "sessionId" in given and "projectHash" in given


def begins(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file begin a chat of Gemini CLI."""
    return any(map(recognises, objects))


def read(data: bytes, name: str = "") -> Log:
    """Read a chat; what the client showed the user is skipped. Of a JSONL file, the chat is read as
    it stands at the end."""
    head = next((mapping(line.value) for line in lines(data)), {})
    if recognises(head) and "messages" not in head:
        chat = _Chat(data)
        log = _log(chat.head, [*chat.messages.values()], name)
        log.skipped[:0] = chat.skipped
        log.problems.extend([*chat.faults.sentences(), *chat.notes])
        return log
    given = mapping(document(data, "a chat of Gemini CLI"))
    messages = map(mapping, sequence(given.get("messages")))
    return _log(given, list(enumerate(messages, start=1)), name)


class _Chat:
    """A JSONL chat as it stands at its end: a message with a known id takes the place of that one,
    `$set` may state all messages again, `$rewindTo` takes a message and all later ones back."""

    def __init__(self, data: bytes) -> None:
        self.head: dict[str, Json] = {}
        self.messages: dict[str, tuple[int, dict[str, Json]]] = {}
        self.skipped: list[Skipped] = []
        self.faults = Faults("Unreadable lines")
        self._left = 0
        for line in lines(data):
            if isinstance(line.value, dict):
                self._take(line.number, line.value)
            else:
                self.skipped.append(self.faults.line(line))

    def _take(self, number: int, given: dict[str, Json]) -> None:
        if "$rewindTo" in given:
            self._rewind(string(given["$rewindTo"]))
        elif isinstance(given.get("id"), str):
            self.messages[string(given["id"])] = (number, given)
        elif "$set" in given:
            stated = mapping(given["$set"]).get("messages")
            if isinstance(stated, list):
                before, self.messages = self.messages, {}
                for one in map(mapping, stated):
                    self.messages[string(one.get("id"))] = (number, one)
                self._left += len(before.keys() - self.messages.keys())
        elif not self.head:
            self.head = given

    def _rewind(self, to: str) -> None:
        ids = list(self.messages)
        gone = ids[ids.index(to) :] if to in self.messages else ids
        self._left += len(gone)
        for one in gone:
            del self.messages[one]

    @property
    def notes(self) -> list[str]:
        """A sentence on messages that the chat no longer has."""
        if not self._left:
            return []
        return [f"Messages that were taken back or replaced, and are not imported: {self._left}."]


def _log(given: dict[str, Json], messages: list[tuple[int, dict[str, Json]]], name: str) -> Log:
    writer = ArraySession("gemini-cli")
    answered: set[str] = set()
    for index, item in messages:
        form = string(item.get("type"))
        at = milliseconds(item.get("timestamp"))
        if form == "user":
            _sent(writer, item, index, answered)
        elif form == "gemini":
            answered |= _answer(writer, item, index, at)
        elif form in {"info", "error", "warning", "about", "help", "stats", "quit"}:
            writer.skipped.append(Skipped(index, form, "not context"))
        else:
            writer.no_message(index)
    log = writer.log(FORMAT, {"id": given.get("sessionId"), "title": ""}, name)
    # The first words of its task name a chat better than its file does.
    writer.session.title = ""
    log.problems.extend(_unknown_parts(writer.session))
    return log


def _sent(writer: ArraySession, item: dict[str, Json], index: int, answered: set[str]) -> None:
    """Write what was sent to the model. In chats in lines, results also stand with their calls,
    in the message before: those ids are in `answered`."""
    at, blocks = milliseconds(item.get("timestamp")), _content(item)
    new = [block for block in blocks if block.get("tool_use_id") not in answered]
    if blocks and not new:
        writer.skipped.append(Skipped(index, "functionResponse", "not context"))
    elif new and all(block.get("type") == "tool_result" for block in new):
        writer.message(Message("tool", new, at=at, line=index))
    else:
        human = bool(new) and not string(new[0].get("text")).startswith(_SET_UP)
        writer.message(Message("user", new, at=at, human=human, line=index))


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


def _answer(writer: ArraySession, item: dict[str, Json], index: int, at: int | None) -> set[str]:
    """Write an answer, and the results that stand with its calls; return their ids."""
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
    return {string(block["tool_use_id"]) for block in results}


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
    files="chats (`session-*.json`, `session-*.jsonl`)",
    recognised_by="`sessionId` next to `projectHash`",
    read=read,
    knows_lines=begins,
    knows_document=recognises,
    folder="~/.gemini/tmp",
    rank=5,
)
