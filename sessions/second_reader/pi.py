"""pi: the context of a call is found by walking up from it, to a compaction or to the root."""

from __future__ import annotations

from typing import Any

from sessions.second_reader.reread import (
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed,
    dicts,
    objects,
    piece,
    pieces,
    used,
    within,
)

_Entry = dict[str, Any]
_ROLES = ("user", "assistant", "toolResult", "developer")


def read(data: bytes) -> list[Reread]:
    """Read a session; entries without ids (version 1) follow one another."""
    found = Reread()
    entries: dict[str, _Entry] = {}
    last: _Entry | None = None
    for line, given in objects(data):
        if given.get("type") == "session":
            continue
        key = str(given.get("id") or f"line-{line}")
        parent = given.get("parentId")
        # The entry and not its id, which a later one may have again: no way up is a circle.
        above = entries.get(parent, last) if isinstance(parent, str) else last
        last = entries[key] = {**given, "line": line, "above": above, "key": key}
        message = given.get("message")
        if given.get("type") == "message" and within(message, "role") == "assistant":
            usage = _billed(within(message, "usage"))
            if usage is None and not within(message, "content"):
                continue
            found.steps.append(RereadStep(line, _context(above), usage))
        found.compactions += given.get("type") == "compaction"
    found.end = _context(last)
    return [found]


def _context(entry: _Entry | None) -> list[RereadPiece]:
    chain: list[_Entry] = []
    while entry is not None:
        chain.append(entry)
        entry = entry["above"]
    chain.reverse()
    ends = [at for at, one in enumerate(chain) if one.get("type") == "compaction"]
    if not ends:
        return [one for entry in chain for one in _pieces(entry)]
    boundary = chain[ends[-1]]
    first, index = boundary.get("firstKeptEntryId"), boundary.get("firstKeptEntryIndex")
    kept = [
        one
        for at, entry in enumerate(chain[: ends[-1]])
        if entry.get("type") == "session_init"
        or any(before["key"] == first for before in chain[: at + 1])
        or (type(index) is int and entry["line"] > index)
        for one in _pieces(entry)
    ]
    summary = boundary.get("summary")
    said = [piece("text", summary, boundary["line"])] if summary else []
    return [*kept, *said, *(one for entry in chain[ends[-1] + 1 :] for one in _pieces(entry))]


def _pieces(entry: _Entry) -> list[RereadPiece]:
    line = entry["line"]
    if entry.get("type") == "session_init":
        return pieces(entry.get("systemPrompt"), line)
    if entry.get("type") == "custom_message":
        return pieces(entry.get("content"), line)
    message = entry.get("message")
    role, content = within(message, "role"), within(message, "content")
    if entry.get("type") != "message" or role not in _ROLES:
        return []
    if role == "toolResult":
        return [answered(content, line)]
    if not isinstance(content, list):
        return pieces(content, line)
    return [one for part in dicts(content) for one in _part(part, line)]


def _part(part: Json, line: int) -> list[RereadPiece]:
    if part.get("type") == "toolCall":
        return [used(part.get("name"), part.get("arguments") or {}, line)]
    return pieces([part], line)


def _billed(usage: Json) -> Any:
    return billed(*(within(usage, name) for name in ("input", "cacheRead", "cacheWrite", "output")))
