"""What an importer makes of a foreign log: our own records, in the order they happened.

An importer is a pure function from the bytes of a file to a `Log`. It works through the file from
top to bottom, so that the records of a log that grew begin with the records it gave before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from compaction.context import Kind, Role
from compaction.session import Usage

Json = Any


@dataclass(slots=True)
class Message:
    """One delivered entry. `blocks` are wire blocks in Anthropic's form, each kept as it was.

    Forms: {"type": "text", "text"}, {"type": "thinking", "thinking"}, {"type": "tool_use", "id",
    "name", "input"}, {"type": "tool_result", "tool_use_id", "content", "is_error"}, {"type":
    "image"|"document", …}, {"type": "tools", "tools": […]}; any other type is kept and shown.
    Fields that the source has beyond these stay in the block.

    `key` is the source's own stable id for the entry (unique in the session), or None. `call` is
    the model response it belongs to: for assistant entries only. `kind` overrides the kind of all
    blocks ("summary", "memory", "system"), `human` says that a person wrote it and a turn begins.
    `at` is milliseconds since the epoch, or None. `extra` are fields of the sender that are none
    of ours, `pinned` asks that the message stays verbatim in every managed context,
    `retry_of` is the failed step that an assistant's message does again.
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
    """What is known of one model call beyond its blocks. A later Call of the same id adds to an
    earlier one; its usage, where not None, replaces the earlier usage.

    An empty `call` is that of the assistant message before it, whatever number it was given.
    `context` is the id of the context that we handed out for it. `settings` is what the request
    asked for beside its messages (level of thinking, effort), `client` which start of the client
    sent it; both only where the log says so.

    `usage` is normalised at the door (Anthropic's input_tokens exclude the cache, most others
    include it); `usage_raw` is the provider's own object. `reconciles` is False where the parts do
    not add up to the total that the source states; nothing is repaired.
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


@dataclass(slots=True)
class Compaction:
    """The log says that what stood in the context was replaced here.

    `keep` lists keys of messages that stay (empty: none). The summary follows as a Message of kind
    "summary". Token counts are the log's own, None where it has none.
    """

    trigger: Literal["auto", "manual", "unknown"] = "unknown"
    keep: tuple[str, ...] = ()
    tokens_before: int | None = None
    tokens_after: int | None = None
    at: int | None = None
    key: str | None = None
    line: int = 0


@dataclass(slots=True)
class Clear:
    """The log says that the results of these tool calls were cleared from the context."""

    tool_calls: tuple[str, ...]
    tokens_saved: int | None = None
    at: int | None = None
    key: str | None = None
    line: int = 0


@dataclass(slots=True)
class Rewind:
    """The session went back: these messages (by key) stood in the context and stand no longer."""

    drop: tuple[str, ...]
    at: int | None = None
    key: str | None = None
    line: int = 0


Record = Message | Call | Compaction | Clear | Rewind


Reason = Literal["unknown", "malformed", "not context"]
"""Why something of the log is no record."""


@dataclass(slots=True)
class Skipped:
    """A line or record that is kept but is no part of the model's context.

    `reason` is "unknown" for types we do not know, "malformed" for lines that do not parse, and
    "not context" for known records that the model never saw. `raw` is the line's bytes.
    """

    line: int
    type: str
    reason: Reason
    raw: bytes = b""


@dataclass(slots=True)
class Session:
    """One agent's conversation as the log has it, its records in order."""

    external_id: str
    agent: str = ""
    model: str = ""
    title: str = ""
    window: int | None = None
    parent: str | None = None
    """External id of the session that started this one."""
    parent_call: str | None = None
    """Id of the tool call, in the parent, that started this one."""
    meta: dict[str, Json] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class Log:
    """All that one file holds. `problems` are sentences for people: what was odd, and where."""

    format: str
    sessions: list[Session] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
