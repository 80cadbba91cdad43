"""Sessions of pi and Oh My Pi (JSONL): a list in version 1, a tree of entries in version 3."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.context.blocks import Role
from compaction.context.session import Usage
from sessions.importers.decoded import Faults, Line, lines
from sessions.importers.importer import Importer
from sessions.importers.joined import by_headers
from sessions.importers.records import (
    Call,
    Compaction,
    Json,
    Log,
    Message,
    Reason,
    Rewind,
    Session,
    Skipped,
)
from sessions.importers.reported import pi_usage
from sessions.importers.wire import blocks_of, mapping, milliseconds, sequence, string, text_block

FORMAT = "pi"

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "user",
    "developer": "system",
}
_BESIDE = frozenset(
    {
        "branch_summary",
        "credential_pin",
        "custom",
        "label",
        "model_change",
        "session_info",
        "thinking_level_change",
        "title",
    }
)
"""Types of lines that the model never sees."""


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file have this format."""
    return any(_is_ours(given) for given in objects)


def _is_ours(given: dict[str, Json]) -> bool:
    if given.get("type") == "session":
        return "cwd" in given and "timestamp" in given and "external_id" not in given
    message = mapping(given.get("message"))
    if given.get("type") != "message" or "sessionId" in given:
        return False
    return message.get("role") == "toolResult" or ("api" in message and "provider" in message)


def read(data: bytes, name: str = "") -> Log:
    """Read a file; each line becomes records or is kept as skipped."""
    del name
    reader = _PiReader()
    for line in lines(data):
        reader.take(line)
    return reader.close()


class _PiReader:
    """Processes a session. An entry attached to an older one removes what followed that one.

    `_chain` holds the ids of entries in context, `_sent` those that are messages, and `_fallen`
    removed messages whose rewind is recorded with the next message. `_level` is the thinking level
    selected last; calls use the level in effect when the user wrote (`_settings`).
    """

    def __init__(self) -> None:
        self.log = Log(FORMAT)
        self.session = Session("", agent="pi")
        self._faults = Faults("Lines that are not readable JSON")
        self._chain: list[str] = []
        self._sent: list[str] = []
        self._fallen: list[str] = []
        self._calls = 0
        self._level = self._settings = ""

    def take(self, line: Line) -> None:
        """Process one line."""
        if line.fault:
            self.log.skipped.append(self._faults.line(line))
            return
        given = mapping(line.value)
        form = string(given.get("type"))
        key = string(given.get("id")) or f"line-{line.number}"
        if form == "session":
            self._header(given)
            self._skip(line, form, "not context")
            return
        at = milliseconds(given.get("timestamp"))
        self._follow(given)
        self._chain.append(key)
        if form == "message":
            self._message(line, mapping(given.get("message")), key, at)
        elif form == "compaction":
            self._compaction(line, given, key, at)
        elif form in {"custom_message", "session_init"}:
            self._placed(line, given, key, at)
        else:
            if form == "thinking_level_change":
                self._level = string(given.get("thinkingLevel"))
            known = form in _BESIDE
            reason: Reason = "not context" if known else "unknown" if form else "malformed"
            self._skip(line, form, reason)

    def close(self) -> Log:
        """Return the log with its session, if there is one."""
        self.log.problems.extend(self._faults.sentences())
        return self.log.close([self.session])

    def _skip(self, line: Line, form: str, reason: Reason) -> None:
        self.log.skipped.append(Skipped(line.number, form, reason, line.raw))

    def _header(self, given: dict[str, Json]) -> None:
        self.session.external_id = self.session.external_id or string(given.get("id"))
        for name in ("cwd", "version", "provider"):
            if isinstance(value := given.get(name), str | int) and value:
                self.session.meta.setdefault(name, value)

    def _follow(self, given: dict[str, Json]) -> None:
        """Go back to the entry's parent if that is not the last entry."""
        parent = given.get("parentId")
        if not isinstance(parent, str) or parent not in self._chain[:-1]:
            return
        place = self._chain.index(parent) + 1
        fallen = set(self._chain[place:])
        del self._chain[place:]
        self._fallen += [key for key in self._sent if key in fallen]
        self._sent = [key for key in self._sent if key not in fallen]

    def _rewind(self, line: int, at: int | None) -> None:
        if self._fallen:
            key = f"rewind-{line}"
            self.session.records.append(Rewind(tuple(self._fallen), at=at, key=key, line=line))
            self._fallen.clear()

    def _write(self, message: Message) -> None:
        self._rewind(message.line, message.at)
        self.session.records.append(message)
        if message.key:
            self._sent.append(message.key)

    def _message(self, line: Line, given: dict[str, Json], key: str, at: int | None) -> None:
        said = string(given.get("role"))
        role = _ROLES.get(said)
        if role is None:
            self._skip(line, f"message/{said}", "unknown")
            return
        at = milliseconds(given.get("timestamp")) or at
        blocks = [_block(block) for block in blocks_of(given.get("content"))]
        if said == "toolResult":
            blocks = [_result(given, blocks)]
        if said == "assistant":
            self._response(line, given, blocks, (key, at))
        elif blocks:
            human = said == "user"
            self._settings = self._level if human else self._settings
            self._write(Message(role, blocks, key=key, at=at, human=human, line=line.number))
        else:
            self._skip(line, "message without content", "not context")

    def _response(
        self,
        line: Line,
        given: dict[str, Json],
        blocks: list[dict[str, Json]],
        when: tuple[str, int | None],
    ) -> None:
        key, at = when
        usage: Usage | None
        usage, reconciles = pi_usage(given.get("usage"))
        if not blocks and usage is None:
            self._skip(line, "empty response", "not context")
            return
        self._calls += 1
        call, model = f"call-{self._calls}", string(given.get("model"))
        self.session.model = model or self.session.model
        if blocks:
            self._write(Message("assistant", blocks, key=key, call=call, at=at, line=line.number))
        self.session.records.append(
            Call(
                call=call,
                model=model,
                at=at,
                usage=usage,
                usage_raw=given.get("usage") if usage else None,
                reconciles=reconciles,
                stop_reason=string(given.get("stopReason")),
                line=line.number,
                settings=self._settings,
            )
        )

    def _compaction(self, line: Line, given: dict[str, Json], key: str, at: int | None) -> None:
        first = given.get("firstKeptEntryId")
        index = given.get("firstKeptEntryIndex")
        keep: tuple[str, ...] = ()
        if isinstance(first, str) and first in self._chain:
            kept = set(self._chain[self._chain.index(first) :])
            keep = tuple(sent for sent in self._sent if sent in kept)
        elif isinstance(index, int) and index >= 0:
            # Entries of version 1 have no ids; the header is the first entry.
            late = {f"line-{number}" for number in range(index + 1, line.number)}
            keep = tuple(sent for sent in self._sent if sent in late)
        before = given.get("tokensBefore")
        self._rewind(line.number, at)
        self.session.records.append(
            Compaction(
                keep=keep,
                tokens_before=before if isinstance(before, int) and before >= 0 else None,
                at=at,
                key=f"compaction-{line.number}",
                line=line.number,
            )
        )
        self._sent = list(keep)
        if summary := string(given.get("summary")):
            blocks = [text_block(summary)]
            self._write(Message("user", blocks, key=key, at=at, kind="summary", line=line.number))

    def _placed(self, line: Line, given: dict[str, Json], key: str, at: int | None) -> None:
        """Record a message added by the client: a system prompt, or a note from an extension."""
        begins = given["type"] == "session_init"
        blocks = blocks_of(given.get("systemPrompt" if begins else "content"))
        if not blocks:
            self._skip(line, string(given["type"]), "not context")
        elif begins:
            self._write(Message("system", blocks, key=key, at=at, kind="system", line=line.number))
        else:
            self._write(Message("user", blocks, key=key, at=at, kind="memory", line=line.number))


def _block(given: dict[str, Json]) -> dict[str, Json]:
    if given.get("type") == "toolCall":
        rest = {k: v for k, v in given.items() if k not in ("arguments", "partialJson")}
        return {**rest, "type": "tool_use", "input": mapping(given.get("arguments"))}
    if given.get("type") == "image" and "data" in given:
        source = {"type": "base64", "media_type": given.get("mimeType"), "data": given["data"]}
        return {"type": "image", "source": source}
    return given


def _result(given: dict[str, Json], blocks: list[dict[str, Json]]) -> dict[str, Json]:
    texts = [string(block.get("text")) for block in blocks if block.get("type") == "text"]
    plain = len(texts) == len(sequence(blocks))
    return {
        "type": "tool_result",
        "tool_use_id": string(given.get("toolCallId")),
        "content": "\n".join(texts) if plain else blocks,
        "is_error": given.get("isError") is True,
    }


IMPORTER = Importer(
    name=FORMAT,
    order=40,
    title="pi and Oh My Pi",
    files="session `.jsonl` of pi and Oh My Pi, versions 1 and 3",
    recognised_by="a `session` line with a working directory, "
    "or messages with `api` and `provider`",
    read=read,
    knows_lines=recognises,
    split=lambda data: by_headers(data, "session", lambda one: string(one.get("id"))),
)
