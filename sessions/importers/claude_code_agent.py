"""One agent of a Claude Code log: its lines in order become its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from sessions.importers.claude_code_attachments import attached, is_known
from sessions.importers.claude_code_tree import Parents, Place, Standing
from sessions.importers.records import (
    Call,
    Clear,
    Compaction,
    Json,
    Message,
    Reason,
    Rewind,
    Session,
)
from sessions.importers.reported import anthropic_usage
from sessions.importers.wire import (
    Block,
    blocks_of,
    has_type,
    mapping,
    milliseconds,
    sequence,
    string,
    text_of,
)

SYNTHETIC = "<synthetic>"
"""The client's name for the model where it wrote a response itself."""

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
"""How user lines begin that no person wrote to the model."""

_SMALL_WINDOW = 200_000
_LARGE_WINDOW = 1_000_000
_SMALL_MODELS = ("claude-3", "claude-sonnet-4", "claude-opus-4", "claude-haiku-4")
_META = {"version": "version", "cwd": "cwd", "gitBranch": "branch", "entrypoint": "entrypoint"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the conversation: its number, its type, its object."""

    line: int
    form: str
    given: dict[str, Json]

    @property
    def at(self) -> int | None:
        """When it was written."""
        return milliseconds(self.given.get("timestamp"))

    @property
    def parent(self) -> str | None:
        """Uuid of the line it follows."""
        return string(self.given.get("parentUuid")) or None

    @property
    def is_root(self) -> bool:
        """Whether it states that it follows nothing."""
        return "parentUuid" in self.given and self.given["parentUuid"] is None

    @property
    def message(self) -> dict[str, Json]:
        """Its wire message."""
        return mapping(self.given.get("message"))


class NoRecord(NamedTuple):
    """Why a line gave no record."""

    type: str
    reason: Reason


class Agent:
    """Takes the lines of one agent and writes its session's records.

    `problems` are sentences for people; `session.external_id` is set by the caller.
    """

    def __init__(self, parents: Parents, *, side: bool) -> None:
        self.session = Session("", agent="claude-code")
        self.problems: list[str] = []
        self._side = side
        self._standing = Standing(parents)
        self._calls: dict[str, Call] = {}
        self._asked: dict[str, str] = {}
        self._keys: set[str] = set()
        self._peak = 0
        self._orphans = 0

    def take(self, entry: Entry) -> NoRecord | None:
        """Write the records of one line, or say why there are none."""
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
        """Set what only the whole log tells."""
        model = self.session.model
        if "[1m]" in model or self._peak > _SMALL_WINDOW:
            self.session.window = _LARGE_WINDOW
        elif model.startswith(_SMALL_MODELS):
            self.session.window = _SMALL_WINDOW
        if self._orphans:
            self.problems.append(
                f"{self._orphans} tool results answer no tool call of this log; they were kept."
            )

    # Speech

    def _user(self, entry: Entry) -> NoRecord | None:
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
        message = self._message(entry, "user", blocks)
        message.human = not is_result and not summary and not meta and self._is_typed(given, blocks)
        if summary:
            message.kind = "summary"
        elif meta:
            message.kind = "memory"
        if not self._side_prompt_seen() and self._side:
            self.session.meta["warmup"] = text_of(blocks).strip() == "Warmup"
        self._stand(message, Place(answers=answers, loose=meta))
        return None

    def _assistant(self, entry: Entry) -> NoRecord | None:
        raw_id = string(entry.message.get("id"))
        call = raw_id or string(entry.given.get("requestId")) or f"line-{entry.line}"
        if call not in self._calls and not self._repeats_a_tool_call(entry):
            self._fall(entry, self._standing.retry(entry.parent))
        if entry.given.get("isApiErrorMessage") is not True:
            blocks = blocks_of(entry.message.get("content"))
            message = self._message(entry, "assistant", blocks)
            message.call = call
            for block in blocks:
                if block.get("type") == "tool_use":
                    self._asked[string(block.get("id"))] = call
            self._stand(message, Place(call=call))
        changed = self._report(entry, call)
        if not changed and entry.given.get("isApiErrorMessage") is True:
            return NoRecord("assistant, error", "not context")
        return None

    def _report(self, entry: Entry, call: str) -> bool:
        """Write what the line tells of its call, if that is news."""
        model = string(entry.message.get("model"))
        reported = anthropic_usage(entry.message.get("usage"))
        error = entry.given.get("isApiErrorMessage") is True
        usage = None if model == SYNTHETIC else reported.usage
        known = self._calls.get(call)
        record = Call(
            call=call,
            model=model,
            at=entry.at,
            usage=usage,
            usage_raw=entry.message.get("usage") if usage else None,
            reconciles=reported.reconciles,
            stop_reason="api_error" if error else string(entry.message.get("stop_reason")),
            line=entry.line,
        )
        if known is not None:
            same_usage = usage is None or usage == known.usage
            same_stop = not record.stop_reason or record.stop_reason == known.stop_reason
            if same_usage and same_stop:
                return False
            record.at = known.at
        self._calls[call] = record
        self.session.records.append(record)
        if model and model != SYNTHETIC:
            self.session.model = self.session.model or model
        if usage and not sequence(mapping(record.usage_raw).get("iterations"))[1:]:
            # Several iterations in one response add up to more than any prompt was.
            self._peak = max(self._peak, usage.prompt)
        return True

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

    def _side_prompt_seen(self) -> bool:
        return "warmup" in self.session.meta

    # What is no speech

    def _attachment(self, entry: Entry) -> NoRecord | None:
        given = entry.given.get("attachment")
        form = f"attachment/{string(mapping(given).get('type'))}"
        found = attached(given)
        if found is None:
            return NoRecord(form, "not context" if is_known(given) else "unknown")
        message = self._message(entry, "user", found.blocks)
        message.kind, message.human = found.kind, found.human and not self._side
        if message.kind == "user":
            message.kind = None
        self._stand(message, Place(loose=True))
        return None

    def _system(self, entry: Entry) -> NoRecord | None:
        subtype = string(entry.given.get("subtype"))
        if subtype == "compact_boundary":
            self._compact(entry)
        elif subtype == "microcompact_boundary":
            self._clear(entry)
        else:
            return NoRecord(f"system/{subtype}", "not context")
        return None

    def _compact(self, entry: Entry) -> None:
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

    def _clear(self, entry: Entry) -> None:
        given = mapping(entry.given.get("microcompactMetadata"))
        cleared = sequence(given.get("compactedToolIds"))
        self.session.records.append(
            Clear(
                tool_calls=tuple(call for call in cleared if isinstance(call, str)),
                tokens_saved=_tokens(given.get("tokensSaved")),
                at=entry.at,
                key=string(entry.given.get("uuid")) or None,
                line=entry.line,
            )
        )

    # Standing

    def _repeats_a_tool_call(self, entry: Entry) -> bool:
        blocks = blocks_of(entry.message.get("content"))
        return any(string(b.get("id")) in self._asked for b in blocks if b.get("id"))

    def _fall(self, entry: Entry, dropped: tuple[str, ...]) -> None:
        if dropped:
            key = f"rewind:{string(entry.given.get('uuid')) or entry.line}"
            self.session.records.append(Rewind(dropped, at=entry.at, key=key, line=entry.line))

    def _message(
        self, entry: Entry, role: Literal["user", "assistant"], blocks: list[Block]
    ) -> Message:
        key = string(entry.given.get("uuid")) or f"line-{entry.line}"
        if key in self._keys:
            key = f"{key}#{entry.line}"
        self._keys.add(key)
        return Message(role, blocks, key=key, at=entry.at, line=entry.line)

    def _stand(self, message: Message, place: Place) -> None:
        assert message.key is not None
        self.session.records.append(message)
        self._standing.add(message.key, place)


def _tokens(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
