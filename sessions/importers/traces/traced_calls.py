"""Model calls of a trace as sessions: every call repeats its history, which is stored once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sessions.importers.records import Call, Json, Log, Message, Rewind, Session
from sessions.importers.reported import NOTHING, Reported
from sessions.importers.traces.said import TraceMessage
from sessions.importers.wire import Block

LONGEST = 60
"""Characters of a stop reason, and of other short fields."""


@dataclass(slots=True)
class TracedCall:
    """One model call, or one tool call of a trace without model calls.

    `group` is the conversation or trace. `said` is the prompt, or the result of the tool. Times are
    milliseconds since the epoch.
    """

    id: str
    group: str
    said: list[TraceMessage]
    answer: list[TraceMessage]
    at: int | None = None
    model: str = ""
    agent: str = ""
    usage: Reported = NOTHING
    usage_raw: Json = None
    stop_reason: str = ""
    tools: list[Json] = field(default_factory=list)
    is_model: bool = True
    line: int = 0


def write_sessions(log: Log, calls: Iterable[TracedCall]) -> Log:
    """Add the sessions of calls to a log, in the order of time."""
    groups: dict[str, list[_Lane]] = {}
    for one in sorted(calls, key=lambda one: one.at or 0):
        lanes = groups.setdefault(one.group, [])
        lane = _lane_of(one, lanes)
        if lane is None:
            lane = _Lane(one, lanes[0].session.external_id if lanes else None)
            lanes.append(lane)
        lane.take(one)
    return log.close(lane.session for lanes in groups.values() for lane in lanes)


def _lane_of(one: TracedCall, lanes: list[_Lane]) -> _Lane | None:
    """The context that a call continues: it shares more than instructions with it, or answers it
    with a tool's result only."""
    if not one.is_model or (one.said and one.said[0].role == "tool"):
        return lanes[-1] if lanes else None
    best = max(lanes, key=lambda lane: lane.shared(one.said), default=None)
    return best if best is not None and best.shared(one.said) > best.instructions else None


class _Lane:
    """One context: digests and keys of the messages in it."""

    def __init__(self, first: TracedCall, parent: str | None) -> None:
        name = first.group if parent is None else f"{first.group}/{first.id}"
        self.session = Session(name, agent=first.agent, parent=parent)
        self.instructions = 0
        self._digests: list[str] = []
        self._keys: list[str] = []
        self._used: Counter[str] = Counter()
        self._tools: list[Json] = []
        self._asked: list[Block] = []

    def shared(self, said: list[TraceMessage]) -> int:
        """How many messages at the start of a prompt are those in the context."""
        count = 0
        for held, one in zip(self._digests, said, strict=False):
            if held != one.digest:
                break
            count += 1
        return count

    def take(self, one: TracedCall) -> None:
        """Add what is new in a prompt, and the answer."""
        if one.tools and one.tools != self._tools:
            self._tools = one.tools
            blocks: list[Block] = [{"type": "tools", "tools": one.tools}]
            key = self._unused(f"tools-{_digest(repr(one.tools))}")
            message = Message("system", blocks, key=key, at=one.at, line=one.line)
            self.session.records.append(message)
        if one.is_model:
            self._prompt(one)
        for said in one.answer:
            self._write(said, one, call=one.id)
        for said in () if one.is_model else one.said:
            self._write(said, one, call=None)
        self.session.model = one.model or self.session.model
        if one.is_model:
            self.session.records.append(
                Call(
                    call=one.id,
                    model=one.model,
                    at=one.at,
                    usage=one.usage.usage,
                    usage_raw=one.usage_raw if one.usage.usage else None,
                    reconciles=one.usage.reconciles,
                    stop_reason=one.stop_reason[:LONGEST],
                    line=one.line,
                )
            )

    def _prompt(self, one: TracedCall) -> None:
        if not self._digests:
            roles = [said.role for said in one.said]
            leading = (place for place, role in enumerate(roles) if role != "system")
            self.instructions = next(leading, len(roles))
        only_new = bool(one.said) and one.said[0].role == "tool"
        common = len(self._digests) if only_new else self.shared(one.said)
        if common < len(self._digests):
            dropped = tuple(self._keys[common:])
            key = self._unused(f"rewind-{one.id}")
            self.session.records.append(Rewind(dropped, at=one.at, key=key, line=one.line))
            del self._digests[common:], self._keys[common:]
        for said in one.said if only_new else one.said[common:]:
            # The past of a context whose first call is not in the trace.
            self._write(said, one, call=None)

    def _write(self, said: TraceMessage, one: TracedCall, call: str | None) -> None:
        digest = said.digest
        # By place and content: a key stays when spans that came earlier arrive later.
        place = len(self._digests) if one.is_model else one.id
        key = self._unused(f"{place}-{_digest(digest)}")
        self._digests.append(digest)
        self._keys.append(key)
        self._pair(said.blocks, key)
        self.session.records.append(
            Message(
                said.role,
                said.blocks,
                key=key,
                call=call,
                at=one.at,
                kind="system" if said.role == "system" else None,
                human=said.role == "user",
                line=one.line,
            )
        )

    def _pair(self, blocks: list[Block], key: str) -> None:
        """Give tool calls and results without usable ids those of each other.

        A result without an id belongs to the first call of its tool that has none, or of any.
        """
        for place, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                block["id"] = block.get("id") or f"{key}.{place}"
                self._asked.append(block)
            elif block.get("type") == "tool_result":
                stated = block.get("tool_use_id")
                for name in ("id", "name"):
                    if call := next((a for a in self._asked if stated and a[name] == stated), None):
                        break
                call = call or (None if stated else next(iter(self._asked), None))
                if call is not None:
                    self._asked.remove(call)
                    block["tool_use_id"] = call["id"]

    def _unused(self, key: str) -> str:
        self._used[key] += 1
        return key if self._used[key] == 1 else f"{key}.{self._used[key]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
