"""Threads of Amp, Cursor and Goose, whose messages are lists of blocks."""

from __future__ import annotations

import json

from sessions.second_reader.arrays import sequence
from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed,
    dicts,
    largest,
    objects,
    piece,
    pieces,
    plain,
    used,
    within,
)


def amp(data: bytes) -> list[Reread]:
    """A thread of Amp."""
    listed = enumerate(dicts(json.loads(data).get("messages")), start=1)
    said = [(at, one) for at, one in listed if one.get("role") in ("user", "assistant")]
    return [
        sequence(
            (at, _amp_pieces(one, at), one["role"] == "assistant", _amp_usage(one.get("usage")))
            for at, one in said
        )
    ]


def _amp_pieces(one: dict[str, Json], at: int) -> list[RereadPiece]:
    content = one.get("content")
    return [
        answered(_amp_result(run), at) if (run := within(part, "run")) else pieces([part], at)[0]
        for part in (content if isinstance(content, list) else [content])
    ]


def _amp_result(run: dict[str, Json]) -> str:
    found, status = run.get("result"), run.get("status")
    if found is None:
        why = within(run, "error", "message") or status
        return str(why) if status in ("error", "cancelled") else ""
    texts = [found] if isinstance(found, str) else [within(found, n) for n in _AMP_TEXTS]
    stated = [text for text in texts if isinstance(text, str)]
    return stated[0] if stated else json.dumps(found, ensure_ascii=False)


_AMP_TEXTS = ("output", "content", "diff")


def _amp_usage(usage: Json) -> Billed | None:
    """Counts beside each other; OpenAI bills no writes, so they were not cached."""
    written = largest(within(usage, "cacheCreationInputTokens"))
    given = largest(within(usage, "inputTokens"))
    if str(within(usage, "model")).startswith("gpt-"):
        given, written = given + written, 0
    read, output = within(usage, "cacheReadInputTokens"), within(usage, "outputTokens")
    return billed(given, read, written, output)


def cursor(data: bytes) -> list[Reread]:
    """A transcript of Cursor; results are no words of the model, whatever role they have."""
    said = []
    for line, given in objects(data):
        parts = within(given, "message", "content")
        if given.get("role") in ("user", "assistant") and parts:
            results = any(part.get("type") == "tool_result" for part in dicts(parts))
            is_response = given["role"] == "assistant" and not results
            said.append((line, pieces(parts, line), is_response, None))
    return [sequence(said)]


def goose(data: bytes) -> list[Reread]:
    """A session of Goose. A compaction hides all that precedes its summary, which no person sees;
    what is hidden after the last one was never sent."""
    try:
        said = list(enumerate(dicts(json.loads(data)["conversation"]), start=1))
    except ValueError:
        said = list(objects(data))[1:]
    hidden = [_is_hidden(one, "agentVisible") for _, one in said]
    first = [*hidden, False].index(False)
    cuts = [place for place, (_, one) in enumerate(said[: first + 1]) if place and _is_summary(one)]
    found = Reread(compactions=len(cuts))
    for place, (at, one) in enumerate(said):
        if place in cuts:
            found.end = []
        read = [] if hidden[place] and place >= max(cuts, default=0) else _goose_pieces(one, at)
        if read and one["role"] == "assistant" and not _is_hidden(one, "userVisible"):
            found.steps.append(RereadStep(at, found.end))
        found.end = [*found.end, *read]
    return [found]


def _is_hidden(one: dict[str, Json], by: str) -> bool:
    return within(one, "metadata", by) is False


def _is_summary(one: dict[str, Json]) -> bool:
    return one.get("role") == "user" and _is_hidden(one, "userVisible")


def _goose_pieces(one: dict[str, Json], at: int) -> list[RereadPiece]:
    if one.get("role") not in ("user", "assistant"):
        return []
    return [each for part in dicts(one.get("content")) for each in _goose_part(part, at)]


def _goose_part(part: dict[str, Json], at: int) -> list[RereadPiece]:
    form = str(part.get("type"))
    readers = within(part, "annotations", "audience")
    if readers is not None and "assistant" not in readers:
        return []
    if form in ("toolRequest", "frontendToolRequest"):
        call = within(part, "toolCall", "value") or part.get("toolCall")
        return [used(within(call, "name"), within(call, "arguments") or {}, at)]
    if form == "toolResponse":
        return [answered(_goose_result(part.get("toolResult")), at)]
    if form == "reasoning":
        return [piece("thinking", str(part.get("text") or ""), at)]
    return pieces([part], at) if form in ("text", "image", "thinking", "redactedThinking") else []


def _goose_result(result: Json) -> Json:
    value = within(result, "value")
    value = within(result, "error") if value is None else value
    content = within(value, "content")
    content = value if content is None else content
    if not isinstance(content, list):
        return content if isinstance(content, str) else plain(content)
    readers = [within(part, "annotations", "audience") for part in content]
    shown = zip(content, readers, strict=True)
    return [
        within(part, "resource") if within(part, "resource", "text") else part
        for part, by in shown
        if by is None or "assistant" in by
    ]
