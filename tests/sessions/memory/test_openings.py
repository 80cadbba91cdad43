"""Openings: what a session begins with of its parent, its task and its project."""

from __future__ import annotations

import pytest

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


def test_who_asks_for_nothing_begins_with_nothing() -> None:
    one = begin("one", task="ports")
    say(one, person("Find the port."))
    gather(one)
    two = begin("two", task="ports")
    say(two, person("Me too."))
    assert [block.text for block in catch_up(two).blocks] == ["Me too."]
    three = begin("three", task="ports", opening="board")
    say(three, person("Me three."))
    assert "<task>Find the port.</task>" in catch_up(three).blocks[0].text
    row = Opening.objects.get(session=three)
    assert three.hidden_tokens == row.tokens > 0
