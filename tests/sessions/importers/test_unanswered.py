"""Results answer tool calls by id, by tool, or in turn, and each call once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessions.importers.traces.unanswered import Unanswered

NAMES = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(NAMES, NAMES) | NAMES | st.none(), max_size=30))
def test_as_a_walk_through_a_list_finds_them(done: list[tuple[str, str] | str | None]) -> None:
    calls, waiting = Unanswered(), list[dict[str, Any]]()
    for one in done:
        if isinstance(one, tuple):
            call = {"id": one[0], "name": one[1]}
            calls.add(call)
            waiting.append(call)
            continue
        by_id = [call for call in waiting if call["id"] == one]
        by_name = [call for call in waiting if call["name"] == one]
        found = (waiting if one is None else by_id + by_name)[:1]
        assert one is None or calls.has_id(one) == bool(by_id)
        assert [calls.take(one)] == (found or [None])
        waiting = [call for call in waiting if not any(call is each for each in found)]
