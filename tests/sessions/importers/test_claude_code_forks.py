"""Claude Code logs: forks, rewinds, and what they drop."""

from __future__ import annotations

import pytest

from sessions.importers.records import Rewind
from tests.sessions.importers.claude_lines import TALK, Json, line, of, responded, said, session_of


def answered(uuid: str, parent: str, tool_call: str) -> Json:
    block = {"type": "tool_result", "tool_use_id": tool_call, "content": "ok"}
    return said(uuid, parent, [block])


def drops(*given: Json) -> list[tuple[str, ...]]:
    return [rewind.drop for rewind in of(session_of(*given), Rewind)]


PARALLEL = [
    said("u", None),
    responded("a1", "u", "m1", "t1"),
    responded("a2", "a1", "m1", "t2"),
    line("progress", "p", "a1", data={}),
    answered("r1", "p", "t1"),
    answered("r2", "a2", "t2"),
]


@pytest.mark.parametrize("parent", ["r1", "r2"])
def test_forks_at_parallel_tool_calls_are_no_rewind(parent: str) -> None:
    assert drops(*PARALLEL, responded("b", parent, "m2"), said("v", "b")) == []


@pytest.mark.parametrize(
    ("new", "dropped"),
    [
        (said("v", "a2"), []),
        (said("v", "a1"), [("u2", "a2")]),
        (said("v", "u1"), [("a1", "u2", "a2")]),
        (said("v", None), [("u1", "a1", "u2", "a2")]),
        (said("v", "not in this file"), []),
        (said("v", "u1", "<command-name>/x</command-name>"), [("a1", "u2", "a2")]),
        (said("v", "u1", "reminder", isMeta=True), []),
        (responded("v", "u2", "m3"), [("a2",)]),
        (responded("v", "u1", "m3"), []),
    ],
)
def test_what_a_new_entry_leaves_behind(new: Json, dropped: list[tuple[str, ...]]) -> None:
    assert drops(*TALK, new) == dropped


def test_what_fell_does_not_fall_again() -> None:
    assert drops(*TALK, said("v", "a1"), responded("b", "v", "m3"), said("w", "b")) == [
        ("u2", "a2")
    ]


def test_attachments_stay_with_their_prompt_and_fall_with_it() -> None:
    reminder = {"type": "hook_additional_context", "content": ["Mind the tide."]}
    attached = [said("u1", None), line("attachment", "h", "u1", attachment=reminder)]
    assert drops(*attached, responded("a", "u1", "m"), said("u2", "a")) == []
    assert drops(said("u0", None), said("u1", "u0"), *attached[1:], said("v", "u0")) == [
        ("u1", "h")
    ]


def test_a_response_hung_on_its_prompt_again_and_again_is_no_retry() -> None:
    given = [said("u", None), responded("a1", "u", "m1", "t1"), answered("r1", "a1", "t1")]
    assert drops(*given, responded("a2", "u", "m2", "t2"), responded("a3", "u", "m3", "t2")) == []
