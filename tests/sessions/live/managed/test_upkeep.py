"""Upkeep of a managed run by a job, after every append."""

from __future__ import annotations

import uuid

import pytest

from sessions.actions.jobs import jobs
from sessions.actions.live import artefacts, tend
from sessions.actions.live.managed import catch_up
from sessions.models import Job, Run, Session
from tests.sessions.live.managed.test_managed import grown, send, talk
from tests.sessions.live.managed.test_managed_changes import do, no_folds, run_of
from tests.sessions.made import reads, result, user

__all__ = ["no_folds"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_run_that_was_never_asked_for_is_not_made():
    stored = send(*[record for batch in talk(12) for record in batch])
    assert do(tend.ask(stored)) is None
    assert not Run.objects.filter(session=stored, origin=Run.Origin.MANAGED).exists()
    stored.refresh_from_db()
    assert stored.measured


def test_the_first_request_decides_once_about_all_that_came_before():
    stored = send(*[record for batch in talk(12) for record in batch])
    plan = catch_up(stored)
    run = run_of(stored)
    assert (run.taken, run.fold["writes"]) == (stored.block_count, 1)
    assert run.head > 0
    assert set(run.revisions.values_list("step", flat=True)) == {plan.step}


def test_tending_brings_the_run_up_to_the_next_call_and_leaves_no_row():
    first, *others = talk(12)
    catch_up(send(*first))
    stored = send(*[record for batch in others for record in batch])
    job = tend.ask(stored)
    assert tend.ask(stored) == job
    assert do(job) is None
    run = run_of(stored)
    assert (run.steps, run.taken) == (stored.step_count + 1, stored.block_count)
    assert run.head > 0
    stored.refresh_from_db()
    assert stored.measured


def test_tending_waits_for_the_results_of_a_response():
    stored = send(user("go", key="1"), reads("c1", "t1", "a.py", key="2"))
    assert run_of(stored).taken == 0
    assert do(tend.ask(stored)) is None
    assert run_of(stored).steps == 1
    stored = send(result("t1", "A", key="3"))
    assert do(tend.ask(stored)) is None
    assert run_of(stored).steps == 2


def test_tending_sees_what_is_appended_while_it_works(monkeypatch: pytest.MonkeyPatch):
    stored = send(user("go", key="1"))
    assert run_of(stored).taken == 0
    later = [[user("and on", key="2")], [user("and on and on", key="3")]]
    real = tend.measure

    def measure(session: Session) -> None:
        real(session)
        if later:
            append_ = send(*later.pop(0))
            assert tend.ask(append_).state == Job.State.RUNNING

    monkeypatch.setattr(tend, "measure", measure)
    tend.ask(stored)
    while job := Job.objects.filter(kind="tend").first():
        assert do(job) is None
    assert run_of(stored).taken == 3
    assert not later


def test_a_failed_tending_stays_visible(monkeypatch: pytest.MonkeyPatch):
    stored = send(user("go", key="1"))

    def broken(session: Session) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(tend, "measure", broken)
    job = do(tend.ask(stored))
    assert job is not None
    assert (job.state, job.attempts) == (Job.State.QUEUED, 1)


def test_a_tending_that_was_taken_over_ends_in_silence():
    stored = send(user("go", key="1"))
    job = tend.ask(stored)
    taken = jobs.claim(job.pk)
    assert taken is not None
    with pytest.raises(jobs.Lost):
        jobs.remove(job.pk, uuid.uuid4())
    assert Job.objects.filter(pk=job.pk).exists()


def test_tending_makes_the_summary_that_a_policy_waits_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(artefacts, "summary_now", artefacts.summary_text)
    stored = grown(24)
    assert catch_up(stored).missing == ("summary",)
    job = Job.objects.get(kind="tend")
    assert do(job) is None
    plan = catch_up(stored)
    assert plan.missing == ()
    assert any(block.kind == "summary" for block in plan.blocks)


def test_a_job_that_always_finds_news_lets_another_go_on(monkeypatch: pytest.MonkeyPatch):
    stored = send(user("go", key="1"))
    real = tend.measure
    sent = iter(range(2, 99))

    def measure(session: Session) -> None:
        real(session)
        send(user("and on", key=str(next(sent))))

    monkeypatch.setattr(tend, "measure", measure)
    job = tend.ask(stored)
    assert do(job) is None
    other = Job.objects.get(kind="tend")
    assert (other.pk != job.pk, other.state) == (True, Job.State.QUEUED)
