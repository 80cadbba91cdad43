"""Reported usage: attached to its call whenever it arrives, and counted once."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.live.deliver import Unacceptable, deliver, delivery, report_call
from sessions.actions.record.measure import measure
from sessions.models import Job, ManagedContext, ModelCall, Run, Session
from sessions.models.record.tail import figures, stored
from tests.sessions.live.appends import live, says, send, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 3}


def calls(session: Session) -> list[tuple[str, int, int | None]]:
    return list(session.calls.order_by("step").values_list("call", "step", "uncached"))


def test_without_a_name_it_is_of_the_newest_call_and_harmless_again():
    session = live()
    send(session, user("a"), says("b"), user("c"), says("d"))
    Job.objects.all().delete()
    call = report_call(session, {"usage": USAGE, "stop_reason": "end_turn"})
    assert (call.step, call.uncached, call.cache_read, call.reconciles) == (2, 10, 90, True)
    assert call.cost_microusd is not None
    assert Job.objects.count() == 1
    version = Session.objects.get().version
    assert report_call(session, {"usage": USAGE, "stop_reason": "end_turn"}).pk == call.pk
    assert Session.objects.get().version == version
    assert calls(session) == [("step-1", 1, None), ("step-2", 2, 10)]


def test_late_reports_find_their_call_by_step_or_id():
    session = live()
    send(session, says("a", call="c1"), says("b"))
    report_call(session, {"step": 2, "usage": USAGE})
    report_call(session, {"call": "c1", "usage": {"prompt_tokens": 7, "completion_tokens": 1}})
    assert calls(session) == [("c1", 1, 7), ("step-2", 2, 10)]


def test_an_id_that_comes_after_the_message_names_its_call_for_good():
    session, said = live(), [user("a"), says("b")]
    send(session, *said)
    for _ in range(2):
        report_call(session, {"call": "msg_1", "usage": USAGE})
    assert calls(session) == [("msg_1", 1, 10)]
    send(session, *said, usage={"input_tokens": 11})
    assert calls(session) == [("msg_1", 1, 11)]


def test_an_id_that_comes_before_the_message_waits_for_it():
    session = live()
    report_call(session, {"call": "msg_1", "usage": USAGE})
    send(session, says("a", call="msg_1"))
    report_call(session, {"call": "msg_2", "usage": USAGE})
    assert calls(session) == [("msg_1", 1, 10), ("msg_2", 2, 10)]


def test_a_context_names_the_step_it_was_for():
    session, other = live(), live("other")
    send(session, user("a"), says("b"), says("c"))
    run = Run.objects.create(session=session, origin=Run.Origin.MANAGED)
    for name, step in (("ctx_1", 1), ("ctx_3", 3)):
        ManagedContext.objects.create(
            id=name, run=run, revision=0, seq=0, step=step, format="blocks", tokens=0
        )
    call = report_call(session, {"context_id": "ctx_1", "usage": USAGE})
    assert (call.step, call.context) == (1, "ctx_1")
    with pytest.raises(Unacceptable, match="/call"):
        report_call(session, {"context_id": "ctx_3", "usage": USAGE})
    with pytest.raises(Unacceptable, match="/context_id"):
        report_call(other, {"context_id": "ctx_1", "usage": USAGE})
    assert not ModelCall.objects.filter(session=other).exists()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (None, ""),
        ({}, "/usage"),
        ({"usage": 3}, "/usage"),
        ({"usage": {"tokens": 3}}, "/usage"),
        ({"usage": {"input_tokens": 2**40}}, "/usage"),
        ({"usage": USAGE}, "/call"),
        ({"usage": USAGE, "step": 0}, "/step"),
        ({"usage": USAGE, "step": True}, "/step"),
        ({"usage": USAGE, "step": 9}, "/step"),
        ({"usage": USAGE, "step": 2**70}, "/step"),
        ({"usage": USAGE, "call": 3}, "/call"),
        ({"usage": USAGE, "call": "x" * 201}, "/call"),
        ({"usage": USAGE, "call": "\x00"}, "/call"),
        ({"usage": USAGE, "context_id": "ctx_none"}, "/context_id"),
        ({"usage": USAGE, "started_at": "yesterday"}, "/started_at"),
        ({"usage": USAGE, "model": []}, "/model"),
    ],
)
def test_what_is_wrong_is_named(body: Any, pointer: str):
    with pytest.raises(Unacceptable) as refused:
        report_call(live(), body)
    assert refused.value.pointer == pointer
    assert not ModelCall.objects.exists()


def test_changed_tools_are_named_as_what_broke_the_cache():
    session = live(model="claude-sonnet-4-5")
    for number, tools in enumerate(([{"name": "f"}], [{"name": "f"}], [{"name": "g"}])):
        read = 30_000 if number == 1 else 0
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 31_000 - read,
            "output_tokens": 3,
        }
        send(session, user("a"), says("b"), tools=tools, usage=usage, history=False)
    measure(session)
    run = Run.objects.get(session=session, origin=Run.Origin.RECORDED)
    causes = figures(stored(run)).causes
    assert [(card["step"], card["kind"]) for card in causes] == [(3, "tools")]


def test_a_call_that_names_no_model_is_one_of_the_sessions():
    usage = {"input_tokens": 100_000, "output_tokens": 1_000}
    costs = []
    for name, more in (("named", {"model": "claude-sonnet-4-5"}), ("unnamed", {}), ("late", {})):
        session = live(name, model="" if name == "late" else "claude-sonnet-4-5")
        send(session, user("hi"))
        send(session, says("yo"), usage=usage, **more)
        send(session, says("again"), **more)
        report_call(session, {"usage": usage})
        report_call(session, {"call": "to-come", "usage": usage})
        if name == "late":
            measure(session)
            assert session.cost_microusd is None
            live(name, model="claude-sonnet-4-5")
            session.refresh_from_db()
            assert not session.measured
        measure(session)
        assert {call.model for call in session.calls.all()} == {"claude-sonnet-4-5"}
        costs.append(session.cost_microusd)
    assert costs == [3 * 315_000] * 3


def test_a_call_reported_with_the_next_append_began_with_its_context():
    session = live()
    send(session, user("a"))
    run = Run.objects.create(session=session, origin=Run.Origin.MANAGED, fold={"writes": 0})
    ManagedContext.objects.create(
        id="ctx_1", run=run, revision=0, seq=1, step=1, format="anthropic", tokens=1
    )
    began = int(ManagedContext.objects.get().created.timestamp() * 1000)
    later = began + 600_000
    body = {"messages": [says("b"), user("c")], "usage": USAGE, "context_id": "ctx_1"}
    deliver(session, delivery(body), now=later)
    assert list(session.calls.values_list("at", flat=True)) == [began]
    assert list(session.messages.order_by("seq").values_list("at", flat=True))[1:] == [began, later]
