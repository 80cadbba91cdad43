"""Counts for the report of an import."""

from __future__ import annotations

from typing import TypedDict

from sessions.importers.records import Call, Compaction, Log, Message, Session

_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class SessionCounts(TypedDict):
    """Counts of one session."""

    external_id: str
    messages: int
    calls: int
    usage_calls: int
    tool_calls: int
    compactions: int


class Counts(TypedDict):
    """Counts of one file; calls are distinct model calls, including those of sub-agents."""

    format: str
    sessions: list[SessionCounts]
    messages: int
    calls: int
    usage_calls: int
    tool_calls: int
    compactions: int
    skipped: dict[str, int]
    problems: list[str]


def counts(log: Log) -> Counts:
    """Count a log; messages are counted per log line or array item."""
    sessions = [_session(session) for session in log.sessions]
    skipped: dict[str, int] = {}
    for item in log.skipped:
        skipped[item.reason] = skipped.get(item.reason, 0) + 1
    return Counts(
        format=log.format,
        sessions=sessions,
        messages=sum(each["messages"] for each in sessions),
        calls=sum(each["calls"] for each in sessions),
        usage_calls=sum(each["usage_calls"] for each in sessions),
        tool_calls=sum(each["tool_calls"] for each in sessions),
        compactions=sum(each["compactions"] for each in sessions),
        skipped=skipped,
        problems=list(log.problems),
    )


def _session(session: Session) -> SessionCounts:
    messages = [record for record in session.records if isinstance(record, Message)]
    calls = [record for record in session.records if isinstance(record, Call)]
    called = {call.call for call in calls}
    if session.agent == "codex" and not any(call.usage for call in calls):
        # Only counts say that a response is complete; without any, its items tell of its call.
        called |= {message.call for message in messages if message.call}
    uses = {
        f"{message.call} {block.get('id') or (message.line, index)}"
        for message in messages
        for index, block in enumerate(message.blocks)
        if block.get("type") in _USES
    }
    return SessionCounts(
        external_id=session.external_id,
        messages=len(messages),
        calls=len(called),
        usage_calls=len({call.call for call in calls if call.usage is not None}),
        tool_calls=len(uses),
        compactions=sum(isinstance(record, Compaction) for record in session.records),
    )
