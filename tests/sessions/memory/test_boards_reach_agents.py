"""How a task's board reaches the agents that work on it, over the API alone."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.policies.presets import BOARD
from compaction.summaries.summary import BOARD_HEAD, board_apart
from sessions.actions.live import folds
from sessions.actions.live.managed import plan_of
from sessions.actions.memory.shares import share_due
from sessions.models import ManagedContext, Revision, Session, Share
from sessions.models.record.replaced import replaced
from tests.sessions.memory.test_shares import work
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

Json = dict[str, Any]


def _say(program: Program, session: str, *messages: Json) -> None:
    program.post(f"/sessions/{session}/messages", {"messages": list(messages)})


def _step(number: int) -> tuple[Json, Json]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}
    text = "".join(f"line {number} {line} of the output\n" for line in range(200))
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}


def _texts(program: Program, session: str) -> list[str]:
    """The texts of the blocks that an agent is sent."""
    sent = program.get(f"/sessions/{session}/context?format=anthropic")["messages"]
    return [
        str(block.get("text", block.get("content", block.get("input"))))
        for message in sent
        for block in message["content"]
    ]


def _begin(program: Program, name: str, **fields: Any) -> None:
    given = {"task": "ports", "window": 60_000, **fields}
    assert program.ask("PUT", f"/sessions/{name}", given).status_code in (200, 201)


def test_a_board_begins_the_next_session_and_follows_each_summary(program: Program) -> None:
    _begin(program, "one")
    _say(program, "one", {"role": "user", "content": "Find the port."})
    _say(program, "one", {"role": "assistant", "content": "It is 8080."})
    program.post("/sessions/one/notes", {"kind": "knowledge", "text": "The host is <db>."})
    work("tend")

    # What the first session learned begins the second one.
    _begin(program, "two", policy_overrides={"compact.trigger": 0.5, "compact.summary_tokens": 800})
    _say(program, "two", {"role": "user", "content": "Open the port."})
    first = _texts(program, "two")
    assert "<task>Find the port.</task>" in first[0] and "The host is &lt;db&gt;." in first[0]
    assert first[1] == "Open the port."

    # The board follows each summary, as it was then, and keeps its bytes until the next one.
    boards: list[str] = []
    before: list[str] = []
    for number in range(40):
        _say(program, "two", *_step(number))
        note = {"kind": "knowledge", "text": f"fact {number}", "key": "newest"}
        program.post("/sessions/one/notes", note)
        texts = _texts(program, "two")
        assert texts[0] == first[0]
        if number % 10 == 9:
            folds.forget_all()
            assert _texts(program, "two") == texts, "a new process sends the same"
        shown = [one for one in texts if BOARD_HEAD in one]
        assert len(shown) <= 1
        if texts[: len(before)] != before and shown and shown[0] not in boards:
            assert f"fact {number}<" in shown[0] and "The host is &lt;db&gt;." in shown[0]
            boards.append(shown[0])
        assert shown == boards[-1:]
        before = texts
    assert len(boards) > 2

    session = Session.objects.get(external_id="two")
    newest = ManagedContext.objects.filter(run__session=session).order_by("created").last()
    assert newest is not None
    assert boards[-1] in [block.text for block in plan_of(newest).blocks]

    # A review judges the summary, a share sends it: the board is beside it.
    compacted = Revision.objects.filter(run__session=session, edits__replacement__kind="summary")
    found = replaced(session, compacted.order_by("number").last())  # type: ignore[arg-type]
    assert found is not None
    assert board_apart(boards[-1]) == (found.summary, found.standing[-1].text)
    assert found.standing[-1].tokens <= BOARD
    share_due(session)
    sent = Share.objects.filter(session=session, cause="compaction").order_by("number").last()
    assert sent is not None
    assert BOARD_HEAD not in sent.summary and "<chat_board>" in sent.board


def test_a_policy_can_show_no_board(program: Program) -> None:
    _begin(program, "one")
    _say(program, "one", {"role": "user", "content": "Find the port."})
    work("tend")
    off = {"compact.trigger": 0.5, "compact.summary_tokens": 800, "board": 0}
    _begin(program, "two", policy_overrides=off)
    _say(program, "two", {"role": "user", "content": "Open the port."})
    for number in range(20):
        _say(program, "two", *_step(number))
        texts = _texts(program, "two")
        assert not any("chat_board" in one for one in texts)
    assert any("<summary>" in one for one in texts)
