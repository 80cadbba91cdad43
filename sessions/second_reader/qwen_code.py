"""Qwen Code: the context of a call is found by walking up from it, to the last compression."""

from __future__ import annotations

import json
from typing import NamedTuple

from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed_whole,
    dicts,
    largest,
    objects,
    piece,
    used,
    within,
)

_SPOKEN = ("user", "assistant", "tool_result")


class _Spoken(NamedTuple):
    """A record: the one that it follows, what it adds, and whether that is all there is."""

    before: _Spoken | None
    pieces: list[RereadPiece]
    is_whole: bool

    def context(self) -> list[RereadPiece]:
        """All that the model reads after this record."""
        path: list[list[RereadPiece]] = []
        one: _Spoken | None = self
        while one is not None:
            path.append(one.pieces)
            one = None if one.is_whole else one.before
        return [each for pieces in reversed(path) for each in pieces]


def read(data: bytes) -> list[Reread]:
    """Read every agent of a file, in order of their first records."""
    agents: dict[tuple[str, str], _QwenAgent] = {}
    for line, given in objects(data):
        name = str(given.get("sessionId") or ""), str(given.get("agentId") or "")
        agents.setdefault(name, _QwenAgent()).take(line, given)
    return [agent.reread for agent in agents.values()]


class _QwenAgent:
    def __init__(self) -> None:
        self.reread = Reread()
        self.known: dict[str, _Spoken] = {}
        self.last: _Spoken | None = None

    def take(self, line: int, given: dict[str, Json]) -> None:
        uuid = str(given.get("uuid") or line)
        if uuid in self.known:
            return
        before = self.known.get(str(given.get("parentUuid")), self.last)
        said = _parts(within(given, "message", "parts"), line)
        is_whole = given.get("subtype") == "chat_compression" and given["type"] == "system"
        if is_whole:
            self.reread.compactions += 1
            history = dicts(within(given, "systemPayload", "compressedHistory"))
            said = [each for one in history for each in _parts(one.get("parts"), line)]
        elif given.get("type") not in _SPOKEN:
            said = []
        elif given["type"] == "assistant" and said:
            context = before.context() if before else []
            step = RereadStep(line, context, _usage(given.get("usageMetadata")))
            self.reread.steps.append(step)
        self.known[uuid] = self.last = _Spoken(before, said, is_whole)
        if said:
            self.reread.end = self.last.context()


def _parts(parts: Json, line: int) -> list[RereadPiece]:
    return [each for part in dicts(parts) for each in _part(part, line)]


def _part(part: dict[str, Json], line: int) -> list[RereadPiece]:
    call, given, text = part.get("functionCall"), part.get("functionResponse"), part.get("text")
    if call:
        return [used(call.get("name"), call.get("args") or {}, line)]
    if given:
        return [answered(_result(given), line)]
    if text is not None:
        return [piece("thinking" if part.get("thought") else "text", text, line)] if text else []
    media = part.get("inlineData") or part.get("fileData") or {}
    kind = str(media.get("mimeType") or "")
    form = "image" if kind.startswith("image/") else "document" if media else "other"
    return [piece(form, "", line)]


def _result(given: dict[str, Json]) -> Json:
    stated = given.get("response") or {}
    alone = [stated[name] for name in ("output", "error") if list(stated) == [name]]
    found = alone[0] if alone else stated
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    inner = _parts(given.get("parts"), 0)
    return "\n".join([text, *(f"[{one.form}]" for one in inner)])


def _usage(counts: Json) -> Billed | None:
    """Gemini's counts: the prompt includes the cache, the output leaves out thoughts."""
    names = "promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount"
    prompt, tools, output = (largest(within(counts, name)) for name in names)
    output += largest(within(counts, "thoughtsTokenCount"))
    cached = largest(within(counts, "cachedContentTokenCount"))
    return billed_whole(max(prompt + tools, cached), cached, 0, output)
