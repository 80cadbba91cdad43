"""Cline: session files are Anthropic's messages; its screen has a request before each response."""

from __future__ import annotations

import json

from sessions.second_reader import arrays
from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    billed,
    dicts,
    piece,
    pieces,
    used,
)

_TYPED = ("task", "user_feedback")
_SAID = ("text", "completion_result")


def read(data: bytes) -> list[Reread]:
    """Read either file."""
    value = json.loads(data)
    return [_screen(dicts(value))] if isinstance(value, list) else arrays.anthropic(data)


def _screen(items: list[dict[str, Json]]) -> Reread:
    """A response is all that is shown from one request, or prompt, to the next."""
    found = Reread()
    answering, tokens = False, None
    for number, item in enumerate(items, start=1):
        form = str(item.get("say") or item.get("ask"))
        if form == "api_req_started":
            answering, tokens = False, _request(str(item.get("text")))
        elif form in _TYPED or (number == 1 and form == "text"):
            answering = False
            found.end += pieces(item.get("text"), number)
        elif (shown := _shown(form, item, number)) is not None:
            if not answering:
                found.steps.append(RereadStep(number, list(found.end), tokens))
            answering, tokens = True, None
            found.end.append(shown)
    return found


def _shown(form: str, item: dict[str, Json], number: int) -> RereadPiece | None:
    """The piece of a response; None for what no model wrote, and for what is still written."""
    text = str(item.get("text") or "")
    if not text or item.get("partial"):
        return None
    if form == "reasoning":
        return piece("thinking", text, number)
    if form == "command":
        return used("execute_command", {"command": text}, number)
    if form == "tool":
        given = json.loads(text)
        shown = ("tool", "content")
        return used(given["tool"], {n: v for n, v in given.items() if n not in shown}, number)
    return piece("text", text, number) if form in _SAID else None


def _request(text: str) -> Billed | None:
    """The usage of a request, whose input leaves out the cache."""
    given = json.loads(text)
    names = "tokensIn", "cacheReads", "cacheWrites", "tokensOut"
    return billed(*(given.get(name) for name in names))
