"""Calls and results that an agent restates as text: "Calling tools:", as smolagents does.

Chat completions have calls and results of their own. Restated as text, a reply would differ from
the one that the model gave and count as a step, and its result could not be offloaded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from contextlab.client.forms.items import type_of
from contextlab.client.shown import blocks_of

Json = dict[str, Any]

_CALLING, _CALLED = "Calling tools:\n", "}]"
_RESULTS = re.compile(r"Observation:\n|Call id: |Error:\n")


class _Restated(NamedTuple):
    """What the model said, its calls as the agent states them, and as blocks if of tools."""

    said: str
    echo: str
    calls: list[Json]


def as_said(messages: Sequence[Json], stops: Any) -> Iterator[Json]:
    """Messages whose calls and results are blocks again.

    Code that the model wrote as text is restated as a call: that moves to the message with
    its result. The agent completes such a text by the one of `stops` that ended it.
    """
    given = stops if isinstance(stops, list) else [stops]
    cut = [one for one in given if isinstance(one, str) and one]
    restated: _Restated | None = None
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        if restated is not None:
            content = message["content"]
            if restated.calls:
                yield {**message, "content": _results(restated.calls, content)}
            else:
                yield {**message, "content": [_text(restated.echo), *content]}
            restated = None
            continue
        if following is not None and _is_result(following):
            restated = _restated(message)
        if restated is None:
            yield message
            continue
        said = restated.said if restated.calls else _without(restated.said, cut)
        texts = [_text(said)] if said.strip() else []
        yield {**message, "content": [*message["content"][:-1], *texts, *restated.calls]}


def _is_result(message: Json) -> bool:
    content = message["content"]
    is_text = message["role"] == "user" and all(type_of(one) == "text" for one in content)
    return is_text and bool(_RESULTS.match(str(content[0].get("text"))))


def _restated(message: Json) -> _Restated | None:
    blocks = blocks_of(message["content"])
    if message["role"] != "assistant" or not blocks or type_of(blocks[-1]) != "text":
        return None
    # The last of several; a pattern would look for the end again from each.
    said, line, given = f"\n{blocks[-1].get('text')}".rpartition(f"\n{_CALLING}[{{")
    if not line or not given.endswith(_CALLED):
        return None
    said, echo = said[1:], f"{_CALLING}[{{{given}"
    calls = _calls(echo.removeprefix(_CALLING))
    if not calls:
        return None
    if all(isinstance(call["input"], dict) for call in calls):
        return _Restated(said, echo, calls)
    return _Restated(said, echo, []) if said.strip() else None


def _calls(text: str) -> list[Json]:
    """The calls in a Python list; empty if they are none."""
    try:
        given = ast.literal_eval(text)
        return [
            {
                "type": "tool_use",
                "id": str(one["id"]),
                "name": str(one["function"]["name"]),
                "input": one["function"]["arguments"],
            }
            for one in given
        ]
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return []


def _results(calls: Sequence[Json], content: list[Json]) -> list[Json]:
    """One result for each call: the agent joins them, so the first has them all."""
    first, *others = [str(call["id"]) for call in calls]
    whole = "\n".join(str(block.get("text") or "") for block in content)
    return [_result(first, whole), *(_result(one, "") for one in others)]


def _result(call: str, content: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _without(said: str, stops: Sequence[str]) -> str:
    return next((said.removesuffix(one) for one in stops if said.endswith(one)), said)
