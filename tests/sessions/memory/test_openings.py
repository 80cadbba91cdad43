"""Openings: what a session begins with of its parent, its task and its project."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import tokens
from sessions.actions.live.managed import catch_up, plan_of, record_context
from sessions.actions.memory import shares
from sessions.actions.memory.gathering import gather
from sessions.actions.memory.openings import HEAD
from sessions.models import Opening
from tests.sessions.memory.test_shares import agent, alone, begin, person, person_of, say, work

__all__ = ["alone"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_sub_agent_begins_with_its_parent_s_summary_and_board() -> None:
    parent = begin("parent", agent="lead")
    say(parent, person("Build <it>."), agent("I look."))
    gather(parent)
    shares.share(
        parent, "hand", "by_hand", summary="<current_work>\nThe port is 8080.\n</current_work>"
    )
    child = begin("child", parent="parent", opening="board", policy="offload-first")
    assert catch_up(child).blocks == ()
    say(child, person("Write the tests."))
    plan = catch_up(child)
    first = plan.blocks[0]
    assert first.text.startswith(HEAD)
    assert "Current work:\nThe port is 8080." in first.text
    assert "<task>Build &lt;it&gt;.</task>" in first.text
    assert plan.blocks[1].text == "Write the tests."
    assert plan.standing.used >= first.tokens
    say(parent, person("Now the docs."), agent("Fine."))
    gather(parent)
    say(child, agent("Done."), person("More."))
    assert catch_up(child).blocks[0] == first, "it never changes again"
    assert plan_of(record_context(plan, "anthropic")).blocks == plan.blocks


def test_a_session_of_a_known_project_begins_with_what_is_known_of_it() -> None:
    one = begin("one", project="acme/app")
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    say(one, person("Go."), {"role": "assistant", "content": [use]}, person_of(result))
    begin("one", outcome="succeeded")
    work("tend")
    for name, wanted, answer in (("two", "project", True), ("three", "board", False)):
        session = begin(name, project="acme/app", opening=wanted)
        say(session, person("Begin."))
        texts = "".join(block.text for block in catch_up(session).blocks)
        assert ("Tests run with: make test" in texts) == answer


@pytest.mark.parametrize(
    ("fields", "opened"),
    [
        ({"task": "ports"}, True),
        ({"task": "ports", "opening": "none"}, False),
        ({"task": "ports", "policy": "offload-first"}, False),
        ({"task": "ports", "policy": "offload-first", "opening": "board"}, True),
        ({"task": "ports", "policy_overrides": {"board": 0}}, False),
        ({"task": "ports", "project": "app"}, True),
        ({"task": "ports", "parent": "one"}, True),
        ({"task": "doors"}, False),
        ({"parent": "one"}, False),
        ({}, False),
    ],
)
def test_a_task_s_next_session_begins_with_its_board(fields: dict[str, Any], opened: bool) -> None:
    one = begin("one", task="ports")
    say(one, person("Find the port."))
    assert [block.text for block in catch_up(one).blocks] == ["Find the port."]
    gather(one)
    shares.share(one, "hand", "by_hand", summary="It is 8080.")
    two = begin("two", **fields)
    say(two, person("Me too."))
    *opening, said = [block.text for block in catch_up(two).blocks]
    assert said == "Me too."
    assert len(opening) == opened
    if opened:
        row = Opening.objects.get(session=two)
        assert two.hidden_tokens == row.tokens > 0
        assert "<task>Find the port.</task>" in opening[0] and "8080" not in opening[0]
    begin("two", project="other")
    assert len(catch_up(two).blocks) == 1 + opened, "it is fixed with the first message"


def test_an_opening_is_no_longer_than_the_policy_says() -> None:
    one = begin("one", task="ports")
    say(one, person("Find the port. " * 900))
    gather(one)
    texts = []
    for most in (100, 400):
        two = begin(f"two{most}", task="ports", policy_overrides={"board": most})
        say(two, person("Me too."))
        texts.append(catch_up(two).blocks[0].text.removeprefix(HEAD))
        assert two.scaled(tokens.count(texts[-1].strip())) <= most
    assert 0 < len(texts[0]) < len(texts[1])
