"""Chats of Qwen Code (JSONL): one record per message, its content in Gemini's form."""

from __future__ import annotations

import json
from collections.abc import Iterable

from compaction.context.blocks import Role
from sessions.importers.decoded import Faults, lines
from sessions.importers.gemini_wire import gemini_blocks
from sessions.importers.importer import Importer
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
from sessions.importers.reported import gemini_usage
from sessions.importers.wire import Block, mapping, milliseconds, sequence, string

FORMAT = "qwen-code"

_BY_PROGRAM = frozenset({"notification", "cron", "background_task_completed", "goal_runtime"})
"""Subtypes of user records that no person wrote."""


def recognises(objects: Iterable[dict[str, Json]]) -> bool:
    """Whether the first objects of a JSONL file are records of Qwen Code."""
    return any(
        "sessionId" in given
        and "parentUuid" in given
        and isinstance(mapping(given.get("message")).get("parts"), list)
        for given in objects
    )


def read(data: bytes, name: str = "") -> Log:
    """Read a chat; records of agents that it started are sessions of their own."""
    del name
    log = Log(FORMAT)
    faults = Faults("Lines that are not readable JSON")
    agents: dict[tuple[str, str], _Reader] = {}
    for line in lines(data):
        given = mapping(line.value)
        if line.fault:
            log.skipped.append(faults.line(line))
            continue
        session, agent = string(given.get("sessionId")), string(given.get("agentId"))
        reader = agents.setdefault((session, agent), _Reader(session, agent))
        if not reader.take(given, line.number):
            form = string(given.get("subtype")) or string(given.get("type"))
            known = given.get("type") == "system"
            reason: Reason = "not context" if known else "unknown"
            log.skipped.append(Skipped(line.number, form, reason, line.raw))
    log.problems += faults.sentences()
    return log.close(reader.session for reader in agents.values())


class _Reader:
    """Reads the records of one agent, which form a tree by `parentUuid`."""

    def __init__(self, session_id: str, agent: str) -> None:
        self.session = Session(session_id, agent="qwen-code")
        if agent:
            self.session.external_id = f"{session_id}/agent-{agent}"
            self.session.parent = session_id
        self._path: dict[str, None] = {}
        self._left: list[str] = []
        self._seen: set[str] = set()
        self._standing: dict[str, str] = {}

    def take(self, given: dict[str, Json], number: int) -> bool:
        """Process one record; False if the model never saw it."""
        key = string(given.get("uuid")) or f"line-{number}"
        if key in self._seen:
            return False
        self._seen.add(key)
        at = milliseconds(given.get("timestamp"))
        self._go_back_to(string(given.get("parentUuid")))
        self._path[key] = None
        form, subtype = string(given.get("type")), string(given.get("subtype"))
        payload = mapping(given.get("systemPayload"))
        if form == "system":
            if subtype == "custom_title":
                self.session.title = string(payload.get("customTitle")) or self.session.title
            elif subtype == "parent_session":
                self.session.parent = string(payload.get("parentSessionId")) or None
            elif subtype == "chat_compression":
                self._compact(payload, key, at, number)
                return True
            return False
        blocks = gemini_blocks(mapping(given.get("message")).get("parts"))
        if form not in {"user", "assistant", "tool_result"} or not blocks:
            return False
        if form == "assistant":
            self._answer(given, Message("assistant", blocks, key=key, at=at, line=number))
        else:
            role: Role = "tool" if form == "tool_result" else "user"
            human = form == "user" and subtype not in _BY_PROGRAM and not self.session.parent
            self._add(Message(role, blocks, key=key, at=at, human=human, line=number))
        return True

    def _answer(self, given: dict[str, Json], message: Message) -> None:
        raw = given.get("usageMetadata")
        reported = gemini_usage(raw)
        message.call = message.key
        model = string(given.get("model"))
        self.session.model = model or self.session.model
        window = given.get("contextWindowSize")
        if isinstance(window, int) and window > 0:
            self.session.window = window
        self._add(message)
        self.session.records.append(
            Call(
                message.call or "",
                model=model,
                at=message.at,
                usage=reported.usage,
                usage_raw=raw if reported.usage else None,
                reconciles=reported.reconciles,
                line=message.line,
            )
        )

    def _add(self, message: Message) -> None:
        self._rewind(message.at, message.line)
        self.session.records.append(message)
        if message.key:
            self._standing[message.key] = _digest(message.role, message.blocks)

    def _go_back_to(self, parent: str) -> None:
        """Remove what came after the parent of a record, if it is not the latest."""
        while parent in self._path and parent != next(reversed(self._path)):
            self._left.append(self._path.popitem()[0])

    def _rewind(self, at: int | None, number: int) -> None:
        """Write that the messages left behind are gone, with the first record after them."""
        gone = tuple(key for key in reversed(self._left) if self._standing.pop(key, None))
        self._left = []
        if gone:
            self.session.records.append(Rewind(gone, at=at, line=number))

    def _compact(self, payload: dict[str, Json], key: str, at: int | None, number: int) -> None:
        """Replace the context by the history that a compaction states; equal messages stay."""
        self._rewind(at, number)
        known: dict[str, list[str]] = {}
        for one, digest in self._standing.items():
            known.setdefault(digest, []).append(one)
        kept: list[str] = []
        new: list[tuple[str, list[Block]]] = []
        for content in map(mapping, sequence(payload.get("compressedHistory"))):
            role = "assistant" if content.get("role") == "model" else "user"
            blocks = gemini_blocks(content.get("parts"))
            matching = known.get(_digest(role, blocks)) if kept or new else None
            if matching:
                kept.append(matching.pop())
            elif blocks:
                new.append((role, blocks))
        info = mapping(payload.get("info"))
        self.session.records.append(
            Compaction(
                keep=tuple(kept),
                tokens_before=_tokens(info.get("originalTokenCount")),
                tokens_after=_tokens(info.get("newTokenCount")),
                at=at,
                key=key,
                line=number,
            )
        )
        self._standing = {one: self._standing[one] for one in kept}
        for place, (_, blocks) in enumerate(new):
            made = Message("user", blocks, key=f"{key}.{place}", kind="summary", at=at, line=number)
            self._add(made)


def _digest(role: str, blocks: list[Block]) -> str:
    side = "assistant" if role == "assistant" else "user"
    return json.dumps([side, [one for one in blocks if one.get("type") != "thinking"]])


def _tokens(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


IMPORTER = Importer(
    name=FORMAT,
    order=18,
    title="Qwen Code",
    files="chats (`chats/*.jsonl`)",
    recognised_by="lines with `sessionId`, `parentUuid` and the parts of a message",
    read=read,
    knows_lines=recognises,
    folder="~/.qwen/projects",
)
