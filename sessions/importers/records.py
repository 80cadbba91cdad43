"""Importers' output: our own records, in order.

An importer is a pure function from the bytes of a file to a `Log`. It processes the file from top
to bottom, so that the records of a longer log start with those of a shorter one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from compaction.context.blocks import Kind, Role
from compaction.context.session import Usage

Json = Any


@dataclass(slots=True)
class Message:
    """One message. `blocks` are wire blocks in Anthropic's form, each unchanged.

    Forms: {"type": "text", "text"}, {"type": "thinking", "thinking"}, {"type": "tool_use", "id",
    "name", "input"}, {"type": "tool_result", "tool_use_id", "content", "is_error"}, {"type":
    "image"|"document", …}, {"type": "tools", "tools": […]}; other types are kept and shown.
    Additional fields of the source stay in the block.

    `key` is the source's own stable id (unique in the session), or None. `call` is the model
    response it belongs to, for assistant messages only. `kind` overrides the kind of all blocks
    ("summary", "memory", "system"); `human` means that a person wrote it and a turn begins. `at` is
    milliseconds since the epoch, or None. `extra` holds unknown fields of the sender; `pinned`
    keeps the message verbatim in every managed context; `retry_of` is the failed step that an
    assistant's message retries.
    """

    role: Role
    blocks: list[dict[str, Json]]
    key: str | None = None
    call: str | None = None
    at: int | None = None
    kind: Kind | None = None
    human: bool = False
    line: int = 0
    extra: dict[str, Json] | None = None
    pinned: bool = False
    retry_of: int | None = None


@dataclass(slots=True)
class Call:
    """One model call, without its blocks. A later Call with the same id adds to it, and replaces
    its usage unless None. `response` is the provider's id of the response, if `call` is none.

    An empty `call` refers to the preceding assistant message. `context` is the id of the managed
    context that was sent. `settings` are request settings such as the thinking level or effort,
    `client` identifies the client process; both only if the log contains them.

    `usage` is normalized (Anthropic's input_tokens exclude the cache, most others include it);
    `usage_raw` is the provider's own object. `reconciles` is False if the parts do not add up to
    the reported total; nothing is corrected. `dropped` are thinking blocks that the provider took
    out of the request; None if it did not say.
    """

    call: str
    model: str = ""
    at: int | None = None
    usage: Usage | None = None
    usage_raw: Json = None
    reconciles: bool = True
    stop_reason: str = ""
    line: int = 0
    context: str = ""
    settings: str = ""
    client: str = ""
    dropped: int | None = None
    response: str = ""


@dataclass(slots=True)
class Compaction:
    """A compaction recorded in the log: the context was replaced here.

    `keep` lists the keys of messages that stay (empty: none). Instructions and tools stay anyway,
    unless the log is `exact` about them, too. The summary follows as a Message of kind "summary".
    Token counts are the log's own, None if missing.
    """

    trigger: Literal["auto", "manual", "unknown"] = "unknown"
    keep: tuple[str, ...] = ()
    exact: bool = False
    tokens_before: int | None = None
    tokens_after: int | None = None
    at: int | None = None
    key: str | None = None
    line: int = 0


@dataclass(slots=True)
class Clear:
    """Tool results cleared from the context, as recorded in the log."""

    tool_calls: tuple[str, ...]
    at: int | None = None
    key: str | None = None
    line: int = 0


@dataclass(slots=True)
class Rewind:
    """A rewind: these messages (by key) are removed from the context."""

    drop: tuple[str, ...]
    at: int | None = None
    key: str | None = None
    line: int = 0


Record = Message | Call | Compaction | Clear | Rewind


Reason = Literal["unknown", "malformed", "not context"]
"""Why a line of the log is not a record."""


@dataclass(slots=True)
class Skipped:
    """A line or record that is kept but not part of the model's context.

    `reason` is "unknown" for unknown types, "malformed" for lines that cannot be parsed, and "not
    context" for known records that the model never saw. `raw` is the line's bytes.
    """

    line: int
    type: str
    reason: Reason
    raw: bytes = b""


@dataclass(slots=True)
class Session:
    """One agent's session from a log, with its records in order.

    Importers leave `external_id` empty where the log contains no id; `parse` then names the session
    by its file and beginning. `former_ids` are the ids that earlier releases gave such a session.
    """

    external_id: str
    agent: str = ""
    model: str = ""
    title: str = ""
    window: int | None = None
    parent: str | None = None
    """External id of the session that started this one."""
    parent_call: str | None = None
    """Id of the tool call in the parent that started this one."""
    meta: dict[str, Json] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    former_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Log:
    """The content of one file. `problems` are sentences for people: what was odd, and where.

    `rows` are the numbered lines of our own export, which the store takes as they are; the sessions
    then show what it would have recorded. So they do of `traced`, the calls of traces, which the
    store puts between those that it has.
    """

    format: str
    sessions: list[Session] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: list[tuple[int, dict[str, Json]]] | None = None
    traced: list[Any] | None = None

    def close(self, sessions: Iterable[Session]) -> Self:
        """Add those of a file's sessions that have records; without any, say so."""
        self.sessions.extend(session for session in sessions if session.records)
        if not self.sessions:
            self.problems.append("The file contains no message, so there is no session to show.")
        return self
