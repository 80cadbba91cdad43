"""One agent of a Claude Code log: converts its lines into records."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sessions.importers.claude_code.attachments import attached, is_known
from sessions.importers.claude_code.calls import SYNTHETIC, Calls
from sessions.importers.claude_code.entry import LogEntry
from sessions.importers.claude_code.tree import Parents, TreeContext, TreeMessage
from sessions.importers.records import (
    Clear,
    Compaction,
    Json,
    Message,
    Reason,
    Rewind,
    Session,
)
from sessions.importers.wire import (
    Block,
    blocks_of,
    has_type,
    mapping,
    sequence,
    string,
    text_of,
)

_NOT_TYPED = (
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-caveat>",
    "<task-notification>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "Caveat:",
    "[Request interrupted",
)
"""Prefixes of user lines that no person typed."""

_LEAVES = ("<command-name>/exit</command-name>", "<command-name>/quit</command-name>")

_META = {"version": "version", "cwd": "cwd", "gitBranch": "branch", "entrypoint": "entrypoint"}


class NoRecord(NamedTuple):
    """Why a line gave no record."""

    type: str
    reason: Reason


class Agent:
    """Converts the lines of one agent into records of its session.

    `problems` are sentences for people; the caller sets `session.external_id`.
    """

    def __init__(self, parents: Parents, *, side: bool) -> None:
        self.session = Session("", agent="claude-code")
        self.problems: list[str] = []
        self._side = side
        self._standing = TreeContext(parents)
        self._calls = Calls()
        self._asked: dict[str, str] = {}
        self._keys: set[str] = set()
        self._prompted = False
        self._orphans = 0

    def take(self, entry: LogEntry) -> NoRecord | None:
        """Write the records of one line, or return why there are none."""
        for name, meta in _META.items():
            if isinstance(value := entry.given.get(name), str) and value:
                self.session.meta.setdefault(meta, value)
        if entry.form == "system":
            return self._system(entry)
        if entry.form == "attachment":
            return self._attachment(entry)
        if not isinstance(entry.given.get("message"), dict):
            return NoRecord(entry.form, "malformed")
        return self._assistant(entry) if entry.form == "assistant" else self._user(entry)

    def close(self) -> None:
        """Set what is known only at the end of the log."""
        self.session.model = self._calls.model
        self.session.window = self._calls.window
        if self._orphans:
            self.problems.append(
                f"Tool results without a matching tool call: {self._orphans}; they were kept."
            )

    # Messages

    def _user(self, entry: LogEntry) -> NoRecord | None:
        given = entry.given
        summary = given.get("isCompactSummary") is True
        if given.get("isVisibleInTranscriptOnly") is True and not summary:
            return NoRecord("user, shown only", "not context")
        blocks = blocks_of(entry.message.get("content"))
        answers = self._answers(blocks)
        is_result = has_type(blocks, "tool_result")
        meta = given.get("isMeta") is True
        if not (is_result or meta or summary):
            self._fall(entry, self._standing.rewind(entry.parent, root=entry.is_root))
        if text_of(blocks).lstrip().startswith(_LEAVES):
            self._calls.leave()
        message = self._message(entry, "user", blocks)
        message.human = not is_result and not summary and not meta and self._is_typed(given, blocks)
        if summary:
            message.kind = "summary"
        elif meta:
            message.kind = "memory"
        if not self._prompted and self._side and text_of(blocks).strip() == "Warmup":
            self.session.meta["warmup"] = True
        self._prompted = True
        self._stand(message, TreeMessage(answers=answers, loose=meta))
        return None

    def _assistant(self, entry: LogEntry) -> NoRecord | None:
        call = entry.call
        # Written by the client: in the context, but of no model call.
        by_client = entry.message.get("model") == SYNTHETIC and not entry.is_error
        if by_client:
            # On resuming: the client goes on from its parent, whatever else came after that.
            self._fall(entry, self._standing.rewind(entry.parent, root=False))
        elif call not in self._calls and not self._repeats_a_tool_call(entry):
            self._fall(entry, self._standing.retry(entry.parent))
        if not entry.is_error:
            blocks = blocks_of(entry.message.get("content"))
            message = self._message(entry, "assistant", blocks)
            message.call = None if by_client else call
            for block in blocks:
                if block.get("type") == "tool_use":
                    self._asked[string(block.get("id"))] = call
            self._stand(message, TreeMessage(call=call))
        report = None if by_client else self._calls.report(entry)
        if report is not None:
            self.session.records.append(report)
        elif entry.is_error:
            return NoRecord("assistant, error", "not context")
        return None

    def _answers(self, blocks: list[Block]) -> tuple[str, ...]:
        calls: list[str] = []
        for block in blocks:
            if block.get("type") != "tool_result":
                continue
            asked = self._asked.get(string(block.get("tool_use_id")))
            if asked is None:
                self._orphans += 1
            else:
                calls.append(asked)
        return tuple(calls)

    def _is_typed(self, given: dict[str, Json], blocks: list[Block]) -> bool:
        origin = mapping(given.get("origin")).get("kind", "human")
        text = text_of(blocks)
        spoken = bool(text) or has_type(blocks, "image") or has_type(blocks, "document")
        return (
            spoken
            and not self._side
            and origin == "human"
            and not text.lstrip().startswith(_NOT_TYPED)
        )

    # Other lines

    def _attachment(self, entry: LogEntry) -> NoRecord | None:
        given = entry.given.get("attachment")
        form = f"attachment/{string(mapping(given).get('type'))}"
        found = attached(given)
        if found is None:
            return NoRecord(form, "not context" if is_known(given) else "unknown")
        message = self._message(entry, "user", found.blocks)
        message.kind, message.human = found.kind, found.human and not self._side
        if message.kind == "user":
            message.kind = None
        self._stand(message, TreeMessage(loose=True))
        return None

    def _system(self, entry: LogEntry) -> NoRecord | None:
        subtype = string(entry.given.get("subtype"))
        if subtype == "compact_boundary":
            self._compact(entry)
        elif subtype == "microcompact_boundary":
            self._clear(entry)
        else:
            return NoRecord(f"system/{subtype}", "not context")
        return None

    def _compact(self, entry: LogEntry) -> None:
        given = mapping(entry.given.get("compactMetadata"))
        trigger = given.get("trigger")
        record = Compaction(
            trigger=trigger if trigger in ("auto", "manual") else "unknown",
            keep=self._standing.compact(self._preserved(given)),
            tokens_before=_tokens(given.get("preTokens")),
            tokens_after=_tokens(given.get("postTokens")),
            at=entry.at,
            key=string(entry.given.get("uuid")) or None,
            line=entry.line,
        )
        self.session.records.append(record)

    def _preserved(self, given: dict[str, Json]) -> tuple[str, ...]:
        listed = mapping(given.get("preservedMessages")).get("uuids")
        if isinstance(listed, list):
            return tuple(key for key in listed if isinstance(key, str))
        ends = mapping(given.get("preservedSegment"))
        return self._standing.segment(string(ends.get("headUuid")), string(ends.get("tailUuid")))

    def _clear(self, entry: LogEntry) -> None:
        given = mapping(entry.given.get("microcompactMetadata"))
        cleared = sequence(given.get("compactedToolIds"))
        self.session.records.append(
            Clear(
                tool_calls=tuple(call for call in cleared if isinstance(call, str)),
                at=entry.at,
                key=string(entry.given.get("uuid")) or None,
                line=entry.line,
            )
        )

    # Tracking the context

    def _repeats_a_tool_call(self, entry: LogEntry) -> bool:
        blocks = blocks_of(entry.message.get("content"))
        return any(string(b.get("id")) in self._asked for b in blocks if b.get("id"))

    def _fall(self, entry: LogEntry, dropped: tuple[str, ...]) -> None:
        if dropped:
            key = f"rewind:{string(entry.given.get('uuid')) or entry.line}"
            self.session.records.append(Rewind(dropped, at=entry.at, key=key, line=entry.line))

    def _message(
        self, entry: LogEntry, role: Literal["user", "assistant"], blocks: list[Block]
    ) -> Message:
        key = string(entry.given.get("uuid")) or f"line-{entry.line}"
        if key in self._keys:
            key = f"{key}#{entry.line}"
        self._keys.add(key)
        return Message(role, blocks, key=key, at=entry.at, line=entry.line)

    def _stand(self, message: Message, place: TreeMessage) -> None:
        assert message.key is not None
        self.session.records.append(message)
        self._standing.add(message.key, place)


def _tokens(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
