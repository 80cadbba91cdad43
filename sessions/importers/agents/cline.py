"""Tasks of Cline: the messages of its screen (`ui_messages.json`), and its session files.

The conversation with the model (`api_conversation_history.json`) is an array of Anthropic messages.
"""

from __future__ import annotations

from collections.abc import Iterable

from compaction.seen.people import words_of
from sessions.importers import anthropic_messages
from sessions.importers.importer import Importer
from sessions.importers.message_array import ArraySession, document
from sessions.importers.naming import stem_of
from sessions.importers.records import Json, Log, Message, Skipped
from sessions.importers.reported import cline_usage
from sessions.importers.traces.said import unpacked
from sessions.importers.wire import mapping, milliseconds, sequence, string, text_block, text_of

FORMAT = "cline"

_LONGEST_TITLE = 200
"""Characters of a prompt that is the title of its session."""

_PROMPTS = frozenset({"task", "user_feedback"})
_ANSWERS = frozenset({"text", "reasoning", "completion_result", "tool", "command"})


def recognises(value: Json) -> bool:
    """Whether a document is a session file, or the messages of the screen."""
    given = mapping(value)
    if "messages" in given and "sessionId" in given:
        return "agent" in given and "updated_at" in given
    first = mapping((sequence(value) or [None])[0])
    return "ts" in first and string(first.get("type")) in {"say", "ask"}


def read(data: bytes, name: str = "") -> Log:
    """Read either file."""
    value = document(data, "a task of Cline")
    if isinstance(value, list):
        return _read_screen(value, name)
    log = anthropic_messages.read(data, name)
    log.format = FORMAT
    session, given = log.sessions[0], mapping(value)
    session.agent = "cline"
    messages = [one for one in session.records if isinstance(one, Message)]
    compacted = ""
    for message in messages:
        if not message.line:
            continue
        item = mapping(sequence(given.get("messages"))[message.line - 1])
        message.key = string(item.get("id")) or None
        kind = string(mapping(item.get("metadata")).get("kind"))
        if kind in {"compaction", "compaction_summary"}:
            message.kind, message.human, compacted = "summary", False, kind
    if compacted:
        # What a compaction made of the session, beside the session itself.
        session.external_id = f"{session.external_id}/{stem_of(name) or compacted}"
    session.title = _task(messages) or session.title
    return log


def _task(messages: Iterable[Message]) -> str:
    """How the first prompt of a person begins; empty if there is none."""
    prompts = (text_of(one.blocks).strip() for one in messages if one.human)
    tasks = (words_of(one.removeprefix("<task>").removesuffix("</task>")) for one in prompts)
    return next((task.strip()[:_LONGEST_TITLE] for task in tasks if task.strip()), "")


def _read_screen(items: list[Json], name: str) -> Log:
    """Read what the screen showed; results of tools and the system prompt are not in it.

    Each `api_req_started` is a model call: its usage comes before what the model said.
    """
    writer = ArraySession("cline")
    waiting: dict[str, Json] = {}
    for index, item in enumerate(map(mapping, items), start=1):
        form = string(item.get("say")) or string(item.get("ask"))
        text, at = string(item.get("text")), milliseconds(item.get("ts"))
        if form == "api_req_started":
            waiting = mapping(unpacked(text))
            writer.skipped.append(Skipped(index, form, "not context"))
        elif form in _PROMPTS or (index == 1 and form == "text"):
            blocks = [text_block(text)] if text else []
            writer.message(Message("user", blocks, at=at, human=bool(blocks), line=index))
        elif form in _ANSWERS and text and not item.get("partial"):
            _answer(writer, Message("assistant", _blocks(form, text, index), at=at), waiting, index)
            waiting = {}
        elif not form:
            writer.no_message(index)
        else:
            writer.skipped.append(Skipped(index, form[:120], "not context"))
    messages = [one for one in writer.session.records if isinstance(one, Message)]
    return writer.log(FORMAT, {"title": _task(messages)}, name)


def _answer(writer: ArraySession, message: Message, request: dict[str, Json], index: int) -> None:
    message.line = index
    last = writer.session.records[-1] if writer.session.records else None
    if not request and getattr(last, "call", None):
        # Another block of the same response.
        message.call = getattr(last, "call", None)
        writer.message(message)
        return
    names = {
        "tokensIn": "inputTokens",
        "tokensOut": "outputTokens",
        "cacheReads": "cacheReadTokens",
        "cacheWrites": "cacheWriteTokens",
    }
    raw = {known: request[name] for name, known in names.items() if name in request}
    cached = [raw.get(name) for name in ("cacheReadTokens", "cacheWriteTokens")]
    if isinstance(fresh := raw.get("inputTokens"), int):
        # Beside the cache here; in session files the input includes it.
        raw["inputTokens"] = fresh + sum(one for one in cached if isinstance(one, int))
    writer.response(message, cline_usage(raw), model="", raw=request or None)


def _blocks(form: str, text: str, index: int) -> list[dict[str, Json]]:
    if form == "reasoning":
        return [{"type": "thinking", "thinking": text}]
    if form == "command":
        used = {"type": "tool_use", "id": f"call-{index}", "name": "execute_command"}
        return [{**used, "input": {"command": text}}]
    if form == "tool" and (given := mapping(unpacked(text))):
        used = {"type": "tool_use", "id": f"call-{index}", "name": string(given.get("tool"))}
        return [{**used, "input": {k: v for k, v in given.items() if k not in {"tool", "content"}}}]
    return [text_block(text)]


IMPORTER = Importer(
    name=FORMAT,
    order=58,
    title="Cline",
    files="session files, `ui_messages.json`",
    recognised_by="`messages` next to `sessionId` and `agent`, or items of type say and ask",
    read=read,
    knows_document=recognises,
    rank=7,
)
