"""GitHub Copilot CLI: the context of a call is what all events before it sent."""

from __future__ import annotations

from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed_whole,
    dicts,
    objects,
    piece,
    pieces,
    used,
    within,
)

_SENT = ("system.message", "system.notification", "user.message")


def read(data: bytes) -> list[Reread]:
    """Read the events of a session; usage is known of an only call, from the totals at the end."""
    found = Reread()
    calls: dict[str, RereadStep] = {}
    for line, event in objects(data):
        form, given = event.get("type"), event.get("data") or {}
        if form == "assistant.message":
            named = str(given.get("apiCallId") or given.get("messageId") or line)
            if named not in calls:
                calls[named] = RereadStep(line, list(found.end))
            found.end += _answer(given, line)
        elif form in _SENT:
            sent = given.get("transformedContent") if form == "user.message" else None
            found.end += pieces(sent or given.get("content"), line)
        elif form == "tool.execution_complete":
            found.end.append(answered(_result(given), line))
        elif form == "session.shutdown" and len(calls) == 1:
            [only] = calls.values()
            only.billed = _totals(list((given.get("modelMetrics") or {}).values()))
    found.steps = list(calls.values())
    return [found]


def _answer(given: dict[str, Json], line: int) -> list[RereadPiece]:
    thought = given.get("reasoningText")
    return [
        *([piece("thinking", thought, line)] if thought else []),
        *pieces(given.get("content"), line),
        *(
            used(one.get("name"), one.get("arguments"), line)
            for one in dicts(given["toolRequests"])
        ),
    ]


def _result(given: dict[str, Json]) -> str:
    ended = given.get("error") if given.get("success") is False else None
    ended = ended or given.get("result") or {}
    return str(ended.get("content") or ended.get("message") or "")


def _totals(models: list[Json]) -> Billed | None:
    if len(models) != 1 or within(models, 0, "requests", "count") != 1:
        return None
    names = "inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"
    return billed_whole(*(within(models, 0, "usage", name) for name in names))
