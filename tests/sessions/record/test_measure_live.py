"""Measuring a live session repeatedly gives the same figures as measuring it once."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction import token_ratio
from sessions.actions.record import measure as measuring
from sessions.actions.record.events import mark
from sessions.actions.record.measure import measure
from sessions.actions.record.news import News, read_news
from sessions.models import Revision, Run, Session
from sessions.models.record import delta, tail
from tests.sessions.record.live_agent import Agent

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture(autouse=True)
def settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps settle, and a token ratio is learned, soon."""
    monkeypatch.setattr(measuring, "SETTLE_ABOVE", 6)
    monkeypatch.setattr(measuring, "LEAVE_OPEN", 2)
    monkeypatch.setattr(token_ratio, "LEAST_GROWTH", 10)
    monkeypatch.setattr(token_ratio, "LEAST_STEPS", 2)


actions = st.lists(
    st.tuples(
        st.sampled_from(
            [*["step"] * 12, "ask", "late", "late message", "rewind", "clear", "serve", "measure"]
        ),
        st.integers(0, 9),
    ),
    min_size=4,
    max_size=40,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=actions, often=st.integers(1, 9))
def test_in_pieces_it_comes_to_the_same(acts: list[tuple[str, int]], often: int):
    Session.objects.all().delete()
    agent = Agent()
    for place, (what, number) in enumerate(acts):
        agent.act(what, number)
        if what == "measure" or place % often == 0:
            measure(agent.session)
    measure(agent.session)
    in_pieces = agent.measured()
    agent.forget()
    measure(agent.session)
    assert in_pieces == agent.measured()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=actions, often=st.integers(1, 9))
def test_who_has_earlier_figures_gets_the_later_ones(acts: list[tuple[str, int]], often: int):
    Session.objects.all().delete()
    agent = Agent()
    measure(agent.session)
    run = agent.run("recorded")
    had, generation = tail.figures(tail.stored(run)), run.generation
    for place, (what, number) in enumerate(acts):
        agent.act(what, number)
        if place % often == 0:
            measure(agent.session)
        if place % 5 == 0:
            row = tail.stored(run)
            news = tail.since(row, had.count, generation)
            assert news is not None
            kept = tail.until(had, news.step - 1)
            had, generation = tail.joined(kept, news.figures), row.generation
            assert had == tail.figures(row)


def test_a_step_of_a_long_session_reads_what_is_new(monkeypatch: pytest.MonkeyPatch):
    read: list[News] = []

    def noted(*given: Any) -> News:
        read.append(read_news(*given))
        return read[-1]

    monkeypatch.setattr(measuring, "read_news", noted)
    agent = Agent()
    for number in range(40):
        agent.step(number % 10)
        measure(agent.session)
    assert agent.run("recorded").settled >= 30
    assert max(len(news.calls) for news in read) <= measuring.SETTLE_ABOVE + 3
    assert max(len(news.entries["recorded"][0]) for news in read) <= 3 * measuring.SETTLE_ABOVE
    assert not delta.is_stale(agent.session, agent.run("recorded"))


def test_a_measuring_that_was_overtaken_begins_again(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original, calls = measuring._compute, []

    def overtaken(session: Session) -> Any:
        made = original(session)
        calls.append(made)
        if len(calls) == 1:
            Run.objects.filter(session=session).update(generation=9)
        return made

    monkeypatch.setattr(measuring, "_compute", overtaken)
    measure(agent.session)
    assert len(calls) == 2
    assert agent.run("recorded").generation == 10
    assert agent.session.measured


def test_what_is_stored_meanwhile_is_left_to_the_next_time(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original = measuring._compute

    def slowly(session: Session) -> Any:
        made = original(session)
        agent.step(1)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "_compute", slowly)
        measure(Session.objects.get(pk=agent.session.pk))
    agent.session.refresh_from_db()
    assert agent.session.step_count == 2
    assert not agent.session.measured
    assert tail.figures(tail.stored(agent.run("recorded"))).count == 1
    measure(agent.session)
    assert agent.session.measured


def test_a_model_chosen_meanwhile_stays(monkeypatch: pytest.MonkeyPatch):
    agent = Agent()
    agent.step(0)
    original = measuring._compute
    chosen = {"model": "claude-opus-5-5", "window": 12_345}

    def slowly(session: Session) -> Any:
        made = original(session)
        Session.objects.filter(pk=session.pk).update(version=F("version") + 1, **chosen)
        return made

    monkeypatch.setattr(measuring, "_compute", slowly)
    measure(agent.session)
    assert Session.objects.filter(pk=agent.session.pk, **chosen).exists()


def test_a_managed_run_tells_the_usage_of_what_was_sent():
    agent = Agent()
    agent.step(0)
    agent.serve(0)
    agent.step(5)
    agent.step(0)
    # A revision of the agent's product with the number of ours.
    Revision.objects.create(run=agent.run("recorded"), number=1, step=2, trigger="auto")
    measure(agent.session)
    found = agent.measured()
    assert found["recorded"]["steps"]["managed"] == [0, 1, 0]
    assert [prompt is None for prompt in found["managed"]["steps"]["prompt"]] == [True, False, True]
    assert found["managed"]["steps"]["basis"] == [1, 0, 1]
    assert None not in found["recorded"]["steps"]["prompt"]
    # Step 2 was the first to see revision 1 of the managed run, and read nothing of the cache.
    for origin in ("recorded", "managed"):
        titles = [cause["title"] for cause in found[origin]["causes"]]
        assert titles == ["context edited at revision 1"]
    assert found["managed revisions"][0][3] > 0


def test_a_step_has_one_mark_for_what_failed():
    kept = tail.Figures(events=[mark(6, "error", "first"), mark(6, "break", "x")])
    news = tail.Figures(events=[mark(6, "error", "first"), mark(7, "error", "second")])
    answer = [(one["step"], one["kind"]) for one in tail.joined(kept, news).events]
    assert answer == [(6, "error"), (6, "break"), (7, "error")]


def test_late_usage_of_a_settled_step_is_reported():
    agent = Agent()
    for number in [0] * 19 + [1, 0, 0]:
        agent.act("step", number)
        measure(agent.session)
    assert agent.run("recorded").settled == 20
    agent.act("late", 0)
    measure(agent.session)
    assert agent.run("recorded").settled == 20, "it settles where it had"
    assert agent.measured()["recorded"]["steps"]["prompt"][19] == 11205
