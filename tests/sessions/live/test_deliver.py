"""Appends: messages of live agents are stored once, in order."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context import wire
from sessions.actions.accounts.teams import local_team
from sessions.actions.live import conversation
from sessions.actions.live.deliver import AnotherRequest, Once, Unacceptable, deliver, delivery
from sessions.actions.record.append import append
from sessions.models import (
    Answer,
    Blob,
    Block,
    Job,
    ManagedContext,
    Message,
    ModelCall,
    Pin,
    Run,
    Session,
)
from sessions.models.record.values import contents
from tests.sessions.live.appends import delivered, live, reads, result, says, send, user
from tests.sessions.made import count, reading

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_batch_is_numbered_counted_and_answered():
    session = live()
    answer = send(session, user("Look into it."), reads("t1", "a.py"), result("t1", "x = 1"))
    assert (answer["appended"], answer["known"]) == (3, 0)
    assert (answer["first_seq"], answer["last_seq"], answer["steps"]) == (1, 3, 1)
    assert [one["seq"] for one in answer["messages"]] == [1, 2, 3]
    assert answer["tokens"] == sum(one["tokens"] for one in answer["messages"])
    assert answer["budget"]["used"] == answer["tokens"]
    assert answer["policy"] == {"name": "balanced@1", "head": 0, "due": False, "last": None}
    assert answer["advice"]["level"] == "ok"
    assert answer["notes"] == []
    session.refresh_from_db()
    assert (session.message_count, session.turn_count, session.used_tokens) == (
        3, 1, answer["tokens"],
    )  # fmt: skip
    assert (session.title, session.token_ratio, session.token_basis) == (
        "Look into it.", 1000, "exact",
    )  # fmt: skip
    assert Job.objects.get().pk.hex == answer["job"].replace("-", "")


def test_an_append_to_a_session_without_a_policy_names_the_one_that_it_selects():
    imported = append(local_team(), reading(1), count, source="test").session
    assert imported.policy_version is None
    assert send(imported, user("go on"))["policy"]["name"] == "balanced@1"


def test_a_result_learns_of_a_call_that_an_earlier_batch_made():
    session = live()
    send(session, user("go"), reads("t1", "src/a.py"))
    send(session, result("t1", "x = 1"))
    shown = Block.objects.get(type="tool_result")
    assert (shown.kind, shown.tool, shown.file_path) == ("file", "Read", "src/a.py")
    assert shown.preview == "Read src/a.py → x = 1"


def test_a_result_learns_of_a_call_that_another_request_appended_while_it_was_prepared(
    monkeypatch: pytest.MonkeyPatch,
):
    session = live()
    send(session, user("go"))

    def prepared(*given: Any) -> conversation.Incoming:
        incoming = conversation.prepare(*given)
        monkeypatch.undo()
        send(Session.objects.get(pk=session.pk), reads("t1", "src/a.py"))
        return incoming

    monkeypatch.setattr("sessions.actions.live.deliver.prepare", prepared)
    answer = send(session, result("t1", "x = 1"))
    assert (answer["first_seq"], answer["notes"]) == (3, [])
    shown = Block.objects.get(type="tool_result")
    assert (shown.kind, shown.tool, shown.file_path) == ("file", "Read", "src/a.py")
    assert shown.preview == "Read src/a.py → x = 1"


@pytest.mark.fault("A10")
@pytest.mark.parametrize("jump", [3_600_000, -3_600_000], ids=["on", "back"])
def test_a_clock_that_is_set_changes_no_order(jump: int):
    session = live()
    for at, text in ((10_000_000, "first"), (10_000_000 + jump, "second"), (10_000_500, "third")):
        deliver(session, delivery({"messages": [user(text)]}), now=at)
    rows = list(session.blocks.order_by("position"))
    data = contents(session, [row.sha for row in rows])
    texts = [wire.decode(data[row.sha])["text"] for row in rows]
    assert texts == ["first", "second", "third"]


def test_each_answer_without_a_call_is_a_step_and_lines_of_one_call_share_it():
    session = live()
    send(session, user("go"), says("one"), says("two"))
    send(session, says("three", call="c3"), call="c3")
    send(session, says("four"), call="c3")
    assert list(ModelCall.objects.order_by("step").values_list("call", "step")) == [
        ("step-1", 1), ("step-2", 2), ("c3", 3),
    ]  # fmt: skip
    assert list(Message.objects.order_by("seq").values_list("born", flat=True)) == [1, 2, 3, 4, 4]
    assert not Message.objects.filter(late=True).exists()


def test_what_comes_after_a_newer_call_is_marked_as_late():
    session = live()
    send(session, says("a", call="c1"), says("b", call="c2"))
    send(session, says("more of a", call="c1"))
    assert list(Message.objects.order_by("seq").values_list("late", flat=True)) == [
        False, False, True,
    ]  # fmt: skip


def test_usage_belongs_to_the_call_of_the_last_answer():
    session = live()
    answer = says("done", usage={"input_tokens": 5, "output_tokens": 2}, model="claude-x")
    send(session, user("go"), answer, user("more"), says("again"),
         usage={"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 58})  # fmt: skip
    first, second = ModelCall.objects.order_by("step")
    assert (first.uncached, first.output, first.model, first.reconciles) == (5, 2, "claude-x", True)
    assert (second.uncached, second.output, second.reconciles) == (50, 7, False)


def test_a_context_must_be_one_of_this_session():
    session, other = live(), live("other")
    run = Run.objects.create(session=session, origin=Run.Origin.MANAGED)
    ManagedContext.objects.create(
        id="ctx_1", run=run, revision=0, seq=0, step=1, format="blocks", tokens=0
    )
    with pytest.raises(Unacceptable, match="/context_id"):
        send(other, says("x"), context_id="ctx_1")
    assert not Message.objects.exists()
    send(session, says("x"), context_id="ctx_1")
    assert ModelCall.objects.get().context == "ctx_1"


def test_orphans_are_taken_and_noted():
    answer = send(live(), result("missing", "x"))
    assert answer["notes"] == ["These results belong to no known tool call: missing."]


def test_fields_that_are_not_ours_are_kept_and_pins_are_set():
    session = live()
    send(session, user("a", name="Ann", x={"\x00": ["\ud800"]}, pinned=True), user("b"))
    import json

    assert json.loads(Message.objects.get(seq=1).extra or "") == {
        "name": "Ann", "x": {"\x00": ["\ud800"]},
    }  # fmt: skip
    assert Message.objects.get(seq=2).extra is None
    assert Pin.objects.get().message.seq == 1


@pytest.mark.fault("F1", "F2")
def test_hostile_text_comes_back_byte_for_byte():
    session = live(title="t")
    text = "\x00 \ud800 <|endoftext|> \u202e"
    call = {"type": "tool_use", "id": "t\x00", "name": "\x00", "input": {"file_path": "\ud800"}}
    many = {"type": "odd", "n": 10**400}
    blocks = [{"type": "text", "text": text}, call, many]
    send(session, {"role": "assistant", "content": blocks})
    answer = {"type": "tool_result", "tool_use_id": "t\x00", "content": text}
    send(session, {"role": "user", "content": [answer]})
    rows = list(session.blocks.order_by("position"))
    data = contents(session, [row.sha for row in rows])
    assert [wire.decode(data[row.sha]) for row in rows] == [*blocks, answer]
    assert rows[3].tool == rows[1].tool


def test_nothing_of_a_batch_is_stored_when_it_fails(monkeypatch: pytest.MonkeyPatch):
    session = live()
    send(session, user("a"))

    def fails(*args: object) -> None:
        raise RuntimeError("disk")

    monkeypatch.setattr("sessions.actions.record.writing._message_ids", fails)
    before = Session.objects.values().get(), Message.objects.count(), Blob.objects.count()
    with pytest.raises(RuntimeError):
        send(session, user("b"), says("c"), once=Once("k", "r"))
    assert before == (Session.objects.values().get(), Message.objects.count(), Blob.objects.count())
    assert not Answer.objects.exists()


# Once


def test_a_retry_is_answered_the_same_and_adds_nothing():
    session, once = live(), Once("key", "digest")
    first = delivered(session, user("a"), once=once)
    again = delivered(session, user("a"), once=once)
    assert (first.again, again.again) == (False, True)
    assert first.answer == again.answer
    assert Message.objects.count() == 1
    with pytest.raises(AnotherRequest):
        delivered(session, user("b"), once=Once("key", "other"))


def test_known_ids_are_not_stored_again():
    session = live()
    send(session, user("a", id="1"), says("b", id="2"))
    answer = send(session, says("b", id="2"), user("c", id="3"))
    assert (answer["appended"], answer["known"], answer["first_seq"]) == (1, 1, 3)
    nothing = send(session, user("c", id="3"))
    assert (nothing["appended"], nothing["job"], nothing["first_seq"]) == (0, None, None)
