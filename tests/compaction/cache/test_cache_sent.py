"""Requests as they were sent: the simulator names what was planted in them, from their bytes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from compaction.cache.sent import request_of
from compaction.cache.simulator import CacheState, advance

Json = Any
MARK = {"cache_control": {"type": "ephemeral"}}
MINUTE = 60_000


def tool(name: str) -> Json:
    return {"name": name, "description": "Does it. " * 200, "input_schema": {"type": "object"}}


def said(words: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": f"{words} " * 400}]}


WAS: Json = {
    "model": "claude-opus-5",
    "tools": [tool("read"), {**tool("write"), **MARK}],
    "system": [{"type": "text", "text": "It is 10:15. " * 200, **MARK}],
    "messages": [said("one"), said("two")],
}


def later() -> Json:
    now = copy.deepcopy(WAS)
    now["messages"].append(said("three"))
    now["messages"][-1]["content"][-1].update(MARK)
    return now


def was_marked() -> Json:
    was = copy.deepcopy(WAS)
    was["messages"][-1]["content"][-1].update(MARK)
    return was


def use_of(now: Json, minutes: float = 1, minimum: int = 512) -> Any:
    state = CacheState()
    advance(state, request_of(None, was_marked(), 1, 0, 512))
    return advance(state, request_of(was_marked(), now, 2, int(minutes * MINUTE), minimum))


def cause(now: Json, **more: Any) -> str | None:
    broken = use_of(now, **more).broken
    return broken.cause if broken else None


def change(how: Callable[[Json], object]) -> Json:
    now = later()
    how(now)
    return now


PICTURE = {"type": "image", "source": {"type": "base64", "data": "aGk="}}


def spread(now: Json) -> None:
    del now["messages"][-1]["content"][-1]["cache_control"]
    now["messages"][-1]["content"] += [{"type": "text", "text": "x"} for _ in range(25)]
    now["messages"][-1]["content"][-1] |= MARK


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (later(), None),
        (change(lambda now: now["tools"].reverse()), "tools"),
        (change(lambda now: now["tools"].pop(0)), "tools"),
        (change(lambda now: now["system"][0].update(text="It is 10:16. " * 200)), "system"),
        (change(lambda now: now["messages"][0]["content"][0].update(text="stub")), "edit"),
        (change(lambda now: now["messages"][-1]["content"].append(PICTURE)), "images"),
        (change(lambda now: now.update(tool_choice={"type": "none"})), "settings"),
        (change(lambda now: now.update(speed="fast")), "settings"),
        (change(lambda now: now.update(model="claude-opus-4-8")), "model"),
        (change(spread), "look_back"),
    ],
)
def test_the_cause_is_named(now: Json, named: str | None) -> None:
    assert cause(now) == named


def test_time_and_size() -> None:
    assert cause(later(), minutes=6) == "ttl"
    assert cause(later(), minimum=10**6) == "minimum"


def test_all_that_stood_is_read_where_nothing_changed() -> None:
    use = use_of(later())
    first = request_of(None, was_marked(), 1, 0)
    assert use.read == first.total and use.uncached == 0
    assert first.tools < first.system < first.total and len(first.breakpoints) == 3
    bare = request_of(None, {"messages": [{"role": "user", "content": "Go."}]}, 1, 0)
    assert [place.offset for place in bare.breakpoints] == [bare.total]
    assert request_of(None, {}, 1, None).breakpoints == ()
