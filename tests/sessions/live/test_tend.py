"""Asking for a session to be tended: one job does, and one that failed does not come in crowds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from channels.layers import InMemoryChannelLayer
from django.utils import timezone

from sessions import live
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.jobs import REST
from sessions.actions.live import tend
from sessions.actions.live.advance import Facts
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.actions.web.once import KEPT, Once, forget_answers
from sessions.models import Answer, Job, Run, Session

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def session() -> Session:
    return put_session(local_team(), "run", SessionFields(model="gpt-5"))[0]


def fail(job: Job) -> Job:
    claimed = jobs.claim(job.pk)
    assert claimed is not None
    assert claimed.token is not None
    jobs.refuse(job.pk, claimed.token, {"title": "No", "detail": "It hung.", "action": "Wait."})
    return Job.objects.get(pk=job.pk)


def test_one_unfinished_job_does_for_all_that_ask(session: Session):
    assert tend.ask(session) == tend.ask(session)


def test_a_failed_job_is_left_alone_for_a_rest_and_then_tried_again(session: Session):
    failed = fail(tend.ask(session))
    assert tend.ask(session) == failed
    assert Job.objects.get(pk=failed.pk).state == Job.State.FAILED
    Job.objects.filter(pk=failed.pk).update(finished=timezone.now() - REST * 2)
    assert tend.ask(session) == failed
    again = Job.objects.get(pk=failed.pk)
    assert (again.state, again.attempts) == (Job.State.QUEUED, 0)
    assert Job.objects.filter(kind="tend").count() == 1


@pytest.mark.parametrize(
    ("steps", "shown", "pause"),
    [(20, "", 1), (21, "", 5), (21, "session:{0.pk}", 3), (21, "sessions:{0.team_id}", 3)],
)
def test_later_steps_wait_longer_and_longest_where_no_page_is_open(
    session: Session, monkeypatch: pytest.MonkeyPatch, settings, steps: int, shown: str, pause: int
):
    settings.TEND_SECONDS = 1
    layer = InMemoryChannelLayer()
    layer.groups[live.group(shown.format(session))] = {}
    monkeypatch.setattr(live, "server_loop", object())
    monkeypatch.setattr(live, "get_channel_layer", lambda: layer)
    asked: list[float] = []
    monkeypatch.setattr(tend, "ask", lambda _, after, **__: asked.append(after))
    session.step_count = steps
    tend.ask_later(session)
    monkeypatch.setattr(live, "server_loop", None)  # as in a command
    session.step_count = 21
    tend.ask_later(session)
    assert asked == [pause, 3]


def test_answers_are_forgotten_after_a_day():
    Once("a", "0" * 64).keep(local_team(), 201, {})
    Once("b", "0" * 64).keep(local_team(), 201, {})
    before = timezone.now() - KEPT - timedelta(minutes=1)
    Answer.objects.filter(key="a").update(created=before)
    assert forget_answers() == 1
    assert list(Answer.objects.values_list("key", flat=True)) == ["b"]


@pytest.mark.parametrize(
    ("taken", "blocks", "outcome", "lags"),
    [
        (0, 49, "", False),
        (0, 50, "", True),
        (40, 41, "succeeded", True),
        (41, 41, "succeeded", False),
        (1_000, 1_249, "", False),
        (1_000, 1_250, "", True),
    ],
)
def test_without_requests_a_managed_run_is_advanced_when_it_is_far_behind(
    session: Session, taken: int, blocks: int, outcome: str, lags: bool
):
    session.outcome = outcome
    assert tend._lags(session, Run(taken=taken), Facts(blocks=blocks)) == lags
