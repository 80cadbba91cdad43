"""Other imports and measurements of a trace while one of its spans is stored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from opentelemetry.sdk.trace import ReadableSpan

from sessions.actions.assessments import assess
from sessions.actions.imports import traced
from sessions.actions.record import measured
from sessions.actions.record.measure import ROUNDS, measure_imported
from sessions.models import Job, Session, Team
from tests.sessions.imports.traced_trees import (
    TREES,
    Said,
    Traced,
    four_calls,
    made_of,
    send,
    stored,
    team,
    text,
)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("before", "now", "meanwhile"),
    [([], [1], [2, 3]), ([1], [5], [6, 7, 8, 9]), ([1], [2], [5]), ([1], [5], [2])],
    ids=["begins the group", "adds to it", "adds a sub-agent", "adds what was asked"],
)
def test_another_import_of_the_group_comes_first(
    before: list[int], now: list[int], meanwhile: list[int], monkeypatch: pytest.MonkeyPatch
):
    spans, ours = TREES["sub-agents"], team()
    append_all = traced.append_all

    def later(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(traced, "append_all", append_all)
        send(ours, [[spans[at] for at in meanwhile]])
        return append_all(*args, **kwargs)

    send(ours, [[spans[at] for at in before]])
    monkeypatch.setattr(traced, "append_all", later)
    send(ours, [[spans[at] for at in now]])
    assert stored(ours) == made_of([[spans[at] for at in (*before, *now, *meanwhile)]])


@pytest.mark.django_db
@pytest.mark.store
def test_another_import_writes_the_group_again_meanwhile(monkeypatch: pytest.MonkeyPatch):
    ours = team()
    first, second, third, last = four_calls()
    append_all = traced.append_all

    def later(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(traced, "append_all", append_all)
        send(ours, [[second]])
        return append_all(*args, **kwargs)

    send(ours, [[last], [third]])
    monkeypatch.setattr(traced, "append_all", later)
    send(ours, [[first]])
    assert stored(ours) == made_of([[first, second, third, last]])


@pytest.mark.django_db
@pytest.mark.store
def test_a_group_grows_while_it_is_read():
    made, ours = Traced(), team()
    main = made.begin("invoke_agent", None)
    said: list[Said] = [text("user", "Find the kelp.")]
    for number in range(3):
        answer = text("assistant", f"At pier {number}.")
        made.chat(main, said, answer)
        said += [answer, text("user", "And then?")]
    first, second, last = made.ended()
    waiting = [last]

    def meanwhile(execute: Any, sql: str, *rest: Any) -> Any:
        if waiting and sql.startswith('SELECT "agent_sessions_block"."message_id"'):
            send(ours, [[waiting.pop()]])
        return execute(sql, *rest)

    send(ours, [[second]])
    with connection.execute_wrapper(meanwhile):
        send(ours, [[first]])
    assert not waiting
    assert stored(ours) == made_of([[first, second, last]])


@pytest.mark.django_db
def test_a_group_is_written_again_while_it_is_measured():
    first, late, *others = four_calls()
    whole, before = made_of([[first, late, *others]]), 0
    while True:
        ours = team()
        send(ours, [[first, *others]])
        session, late_one = Session.objects.get(team=ours), Between(before, ours, late)
        with connection.execute_wrapper(late_one):
            measure_imported(session)
        if not late_one.sent:
            break
        assert stored(ours) == whole, f"before query {before}"
        before += 1
    assert before > 5


@pytest.mark.django_db
def test_a_session_that_is_written_all_the_time_is_left_to_a_job(monkeypatch: pytest.MonkeyPatch):
    ours, rounds = team(), list[int]()
    send(ours, [four_calls()])
    session = Session.objects.get(team=ours)

    def always_behind(session: Session) -> None:
        rounds.append(1)
        assert len(rounds) <= ROUNDS
        session.measured = False

    monkeypatch.setattr("sessions.actions.record.measure.measure", always_behind)
    assess.measure_now(session)
    assert len(rounds) == ROUNDS
    assert Job.objects.filter(kind="assess", payload__session=str(session.pk)).exists()


@pytest.mark.django_db
def test_a_session_written_again_while_its_lock_was_awaited(monkeypatch: pytest.MonkeyPatch):
    ours, version = team(), measured._VERSION

    def none_yet(**given: Any) -> None:  # as PostgreSQL answers: it waited for the row before
        monkeypatch.setattr(measured, "_VERSION", version)

    monkeypatch.setattr(measured, "_VERSION", SimpleNamespace(first=none_yet))
    send(ours, [four_calls()])
    assert measured._VERSION is version
    assert Session.objects.get(team=ours).usage_calls == 4


class Between:
    """Sends a span before the n-th query outside of transactions."""

    def __init__(self, number: int, ours: Team, span: ReadableSpan) -> None:
        self.left, self.ours, self.span = number, ours, span
        self.depth, self.sent = len(connection.savepoint_ids), False

    def __call__(self, execute: Any, *asked: Any) -> Any:
        if len(connection.savepoint_ids) == self.depth and not self.sent:
            self.sent = self.left == 0
            self.left -= 1
            if self.sent:
                send(self.ours, [[self.span]])
        return execute(*asked)
