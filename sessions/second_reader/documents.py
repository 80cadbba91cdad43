"""Documents of agents in which a response and the results of its tools stand together."""

from __future__ import annotations

import json

from sessions.second_reader.arrays import sequence
from sessions.second_reader.reread import (
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed,
    billed_whole,
    dicts,
    piece,
    pieces,
    plain,
    used,
    within,
)


def gemini(data: bytes) -> list[Reread]:
    """Chats of Gemini CLI."""
    try:
        spoken = list(enumerate(dicts(json.loads(data).get("messages")), start=1))
    except ValueError:
        spoken = _standing(data)
    asked = [(at, one) for at, one in spoken if one.get("type") in ("user", "gemini")]
    calls = [call for _, one in asked for call in dicts(one.get("toolCalls"))]
    known = {str(call.get("id")) for call in calls if _has_result(call)}
    return [
        sequence(
            (at, _turn(at, one, known), one["type"] == "gemini", _gemini_usage(one))
            for at, one in asked
        )
    ]


def _standing(data: bytes) -> list[tuple[int, dict[str, Json]]]:
    """The messages of a chat in lines that none of the later lines take back or replace."""
    found: list[tuple[int, dict[str, Json]]] = []
    for at, line in enumerate(data.decode("utf-8-sig", "replace").split("\n"), start=1):
        try:
            one = json.loads(line)
        except ValueError:
            continue
        places = {each.get("id"): place for place, (_, each) in enumerate(found)}
        stated = within(one, "$set", "messages")
        if "$rewindTo" in one:
            found = found[: places.get(one["$rewindTo"], 0)]
        elif isinstance(stated, list):
            found = [(at, each) for each in dicts(stated)]
        elif one.get("id") in places:
            found[places[one["id"]]] = (at, one)
        elif one.get("id"):
            found.append((at, one))
    return found


def _turn(at: int, one: dict[str, Json], known: set[str]) -> list[RereadPiece]:
    """What a message says; `known` calls have their results with them, so no message adds them."""
    if one["type"] == "user":
        said = one.get("content")
        parts = said if isinstance(said, list) else [said]
        new = [p for p in parts if str(within(p, "functionResponse", "id")) not in known]
        return _gemini_parts(new, at)
    thoughts = [
        piece("thinking", f"{each.get('subject', '')}\n{each.get('description', '')}", at)
        for each in dicts(one.get("thoughts"))
    ]
    calls = dicts(one.get("toolCalls"))
    uses = [used(call.get("name"), call.get("args") or {}, at) for call in calls]
    results = [answered(_gemini_result(call), at) for call in calls if _has_result(call)]
    return [*thoughts, *_gemini_parts(one.get("content"), at), *uses, *results]


def _has_result(call: dict[str, Json]) -> bool:
    return call.get("result") is not None or call.get("resultDisplay") is not None


def _gemini_parts(content: Json, at: int) -> list[RereadPiece]:
    """A content is text, a part or a list of both; a part has one key that names its kind."""
    found: list[RereadPiece] = []
    for part in content if isinstance(content, list) else [content]:
        part = {"text": part} if isinstance(part, str) else part or {}
        call, result = part.get("functionCall"), part.get("functionResponse")
        if part.get("text") is not None:
            form = "thinking" if part.get("thought") else "text"
            found += [piece(form, part["text"], at)] if part["text"] else []
        elif call:
            found.append(used(call.get("name"), call.get("args") or {}, at))
        elif result:
            found.append(answered(_gemini_result({"result": [part]}), at))
        elif part:
            found.append(piece(_gemini_media(part) or "other", "", at))
    return found


def _gemini_media(part: dict[str, Json]) -> str:
    kind = within(part, "inlineData", "mimeType") or within(part, "fileData", "mimeType")
    return "" if kind is None else "image" if str(kind).startswith("image/") else "document"


def _gemini_result(call: dict[str, Json]) -> str:
    given = [within(one, "functionResponse", "response") for one in dicts(call.get("result"))]
    texts = [plain(one) if within(one, "output") is None else one["output"] for one in given if one]
    text = "\n".join(one for one in texts if isinstance(one, str))
    shown = call.get("resultDisplay")
    text = text or (shown if isinstance(shown, str) else "")
    parts = dicts(call.get("result"))
    inner = [one for p in parts for one in dicts(within(p, "functionResponse", "parts"))]
    media = [f"[{kind}]" for one in [*parts, *inner] if (kind := _gemini_media(one))]
    return "\n".join([text, *media])


def _gemini_usage(one: dict[str, Json]) -> Json:
    tokens = one.get("tokens") or {}
    prompt = (tokens.get("input") or 0) + (tokens.get("tool") or 0)
    output = (tokens.get("output") or 0) + (tokens.get("thoughts") or 0)
    return billed_whole(prompt, tokens.get("cached"), 0, output)


def opencode(data: bytes) -> list[Reread]:
    """Exports of opencode; a compaction leaves nothing, a summary follows it."""
    found = Reread()
    for at, one in enumerate(dicts(json.loads(data).get("messages")), start=1):
        parts = dicts(one.get("parts"))
        if within(one, "info", "role") == "assistant":
            found.steps.append(RereadStep(at, list(found.end), _opencode_usage(one)))
            found.end += _answer(at, parts)
        elif any(part.get("type") == "compaction" for part in parts):
            found.end, found.compactions = [], found.compactions + 1
        else:
            texts = [p for p in parts if p.get("type") == "text" and not p.get("ignored")]
            images = [p for p in parts if str(p.get("mime")).startswith("image/")]
            found.end += [each for part in texts for each in pieces(part.get("text"), at)]
            found.end += [piece("image", "", at) for _ in images]
    return [found]


def _answer(at: int, parts: list[dict[str, Json]]) -> list[RereadPiece]:
    answer: list[RereadPiece] = []
    results: list[RereadPiece] = []
    for part in parts:
        form, text, state = part.get("type"), part.get("text"), part.get("state") or {}
        if form in ("text", "reasoning") and text:
            answer.append(piece("thinking" if form == "reasoning" else "text", text, at))
        elif form == "tool":
            answer.append(used(part.get("tool"), state.get("input") or {}, at))
            if state.get("status") in ("completed", "error"):
                results.append(answered(_opencode_result(state), at))
    return [*answer, *results]


def _opencode_result(state: dict[str, Json]) -> Json:
    if within(state, "time", "compacted") is not None:
        return "[Old tool result content cleared]"
    return state.get("error" if state["status"] == "error" else "output")


def _opencode_usage(one: dict[str, Json]) -> Json:
    tokens = within(one, "info", "tokens") or {}
    output = (tokens.get("output") or 0) + (tokens.get("reasoning") or 0)
    read, written = within(tokens, "cache", "read"), within(tokens, "cache", "write")
    return billed(tokens.get("input"), read, written, output)
