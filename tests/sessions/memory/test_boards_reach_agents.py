"""How a task's board reaches the agents that work on it, over the API alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from compaction.policies.presets import BOARD
from compaction.summaries.summary import BOARD_HEAD, board_apart
from sessions.actions.live import folds
from sessions.actions.live.managed import plan_of
from sessions.actions.memory.shares import share_due
from sessions.models import ManagedContext, Revision, Session, Share
from sessions.models.record.replaced import replaced
from sessions.views.reviews.sections import sections
from tests.sessions.memory.test_shares import work
from tests.sessions.programs import Program, assert_problem

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

    _is_what_others_get(boards[-1])


def _is_what_others_get(board: str) -> None:
    """A review judges the summary, a share sends it: the board is beside it."""
    session = Session.objects.get(external_id="two")
    newest = ManagedContext.objects.filter(run__session=session).order_by("created").last()
    assert newest is not None
    assert board in [block.text for block in plan_of(newest).blocks]

    compacted = Revision.objects.filter(run__session=session, edits__replacement__kind="summary")
    found = replaced(session, compacted.order_by("number").last())  # type: ignore[arg-type]
    assert found is not None
    assert board_apart(board) == (found.summary, found.standing[-1].text)
    assert found.standing[-1].tokens <= BOARD
    assert [part.title for part in sections(board)][-2:] == ["Optional next step", "Board"]
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


def test_a_share_brings_what_it_rests_on_and_the_receiver_can_read_it(program: Program) -> None:
    _begin(program, "finder", agent="finder", task="search")
    for name, task in (("reader", "docs"), ("stranger", "docs"), ("peer", "search")):
        _begin(program, name, task=task)
        _say(program, name, {"role": "user", "content": "Write the docs."})
    for name in ("reader", "peer"):
        program.post("/subscriptions", {"session": name, "kind": "task", "value": "search"})
    _say(program, "finder", {"role": "user", "content": "Find the port."}, *_step(1))
    secret = {"type": "tool_result", "tool_use_id": "t2", "content": "port 8080, ann@acme.io"}
    use = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "etc/port.ini"}}
    _say(program, "finder", {"role": "assistant", "content": [use]})
    _say(program, "finder", {"role": "user", "content": [secret]}, *_step(3))
    given = {"summary": "The port stands in etc/port.ini.", "key": "port"}
    share = program.post("/sessions/finder/shares", given)["id"]
    work("share")

    # The result that the summary names comes first.
    end = _texts(program, "reader")[-1]
    assert "The port stands in etc/port.ini." in end and "<task>Find the port.</task>" in end
    refs = re.findall(r'<result ref="([^"]+)">([^<]*)</result>', end)
    assert [about for _, about in refs] == ["Read etc/port.ini", "Bash", "Bash"]
    assert all(ref.startswith(f"share:{share}:") for ref, _ in refs)
    read = program.get(f"/sessions/reader/content/{refs[0][0]}")
    assert read["text"] == "port 8080, [EMAIL_1]"
    assert "line 3 7 of" in program.get(f"/sessions/reader/content/{refs[1][0]}?grep=3%207")["text"]
    whole = program.get(f"/sessions/reader/content/share:{share}")["text"]
    assert all(f"[{ref}]" in whole for ref, _ in refs) and "Find the port." in whole

    # One who works on the same task has its board already; other sessions cannot read it.
    peer = _texts(program, "peer")[-1]
    assert "<share " in peer and "<task>" not in peer
    own = f"/sessions/reader/content/share:{share}"
    wrong = [f"{own}:m1.0", f"{own}:x", "/sessions/reader/content/share:9999999999",
             f"/sessions/stranger/content/{refs[0][0]}"]  # fmt: skip
    for address in wrong:
        assert_problem(program.ask("GET", address), 404)
    note = next(
        one for one in program.get("/sessions/reader/notes")["notes"] if one["by"] == "share"
    )
    assert program.ask("DELETE", f"/sessions/reader/notes/{note['id']}").status_code == 200
    assert_problem(program.ask("GET", own), 404)
    assert "share:" not in _texts(program, "reader")[-1]
