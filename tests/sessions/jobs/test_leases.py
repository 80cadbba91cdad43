"""A job belongs to one worker at a time, until its lease ends."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from sessions.actions.jobs import jobs, leases
from sessions.models import Job
from tests.sessions.jobs.working import State, run

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("surroundings"),
]


@pytest.mark.fault("C7")
def test_a_lease_that_ran_out_is_swept_and_the_old_holder_writes_no_more(team):
    job = jobs.enqueue(team, "add", {"numbers": []})
    old = jobs.claim(job.id)
    assert jobs.claim(job.id) is None
    assert jobs.sweep() == 0
    Job.objects.update(lease_until=leases.ENDED)
    assert jobs.sweep() == 1
    new = jobs.claim(job.id)
    assert new.token != old.token
    with pytest.raises(jobs.Lost):
        jobs.progress(job.id, old.token, 1, 2, "")
    with pytest.raises(jobs.Lost):
        jobs.finish(job.id, old.token, {"wrong": 1})
    jobs.give_up_attempt(job.id, old.token, "too late")
    jobs.put_back(job.id, old.token)
    jobs.finish(job.id, new.token, {"right": 1})
    job.refresh_from_db()
    assert (job.state, job.result) == (State.DONE, {"right": 1})


def test_workers_that_die_use_up_no_attempts_but_not_for_ever(team, settings):
    settings.JOB_LOSSES = 10
    job = jobs.enqueue(team, "fail", {})
    for losses in range(10):
        claimed = jobs.claim(job.id)
        assert (claimed.attempts, claimed.losses) == (1, losses)
        Job.objects.update(lease_until=leases.ENDED)
    job = run(job)  # the last time that its worker may have died; now it fails by itself
    assert (job.state, job.attempts, job.losses) == (State.QUEUED, 1, 10)
    assert jobs.claim(job.id).attempts == 2
    Job.objects.update(lease_until=leases.ENDED)
    assert jobs.claim(job.id) is None
    job.refresh_from_db()
    assert job.state == State.FAILED
    assert "stopped 10 times" in job.problem["detail"]
    assert jobs.retry(job)
    job.refresh_from_db()
    assert (job.attempts, job.losses) == (0, 0)


def test_a_renewed_lease_holds(team):
    job = jobs.enqueue(team, "add", {"numbers": []})
    held = jobs.claim(job.id)
    Job.objects.update(lease_until=leases.ENDED)
    jobs.renew(job.id, held.token)
    assert jobs.claim(job.id) is None


def test_the_start_of_the_only_server_frees_everything(team):
    running, queued = (jobs.enqueue(team, "add", {"numbers": []}) for _ in range(2))
    jobs.claim(running.id)
    jobs.requeue_all()
    assert jobs.sweep() == 2
    assert jobs.claim(running.id)
    assert jobs.claim(queued.id)


class Clocks:
    """The time of day, and seconds since this process began."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time, self.ran = timezone.now(), 0.0
        monkeypatch.setattr(timezone, "now", lambda: self.time)
        monkeypatch.setattr(leases, "monotonic", lambda: self.ran)

    def run(self, seconds: float) -> None:
        self.ran += seconds
        self.time += timedelta(seconds=seconds)


@pytest.mark.fault("A10")
@pytest.mark.parametrize("hours", [1, -1], ids=["on", "back"])
def test_a_clock_that_is_set_moves_no_lease(team, settings, monkeypatch, hours):
    settings.JOB_LEASE_SECONDS = 20
    clocks = Clocks(monkeypatch)
    job = jobs.enqueue(team, "add", {"numbers": []})
    held = jobs.claim(job.id)
    jobs.sweep()
    clocks.time += timedelta(hours=hours)
    for _ in range(4):
        clocks.run(15)
        jobs.renew(job.id, held.token)
        assert jobs.sweep() == 0
    assert jobs.claim(job.id) is None  # the holder lives
    clocks.run(19)
    assert jobs.sweep() == 0
    clocks.run(1)
    assert jobs.sweep() == 1
    assert jobs.claim(job.id).token != held.token


@pytest.mark.fault("A10")
def test_a_clock_that_is_set_back_delays_no_job(team, monkeypatch):
    clocks = Clocks(monkeypatch)
    jobs.enqueue(team, "add", {"numbers": []}, after=600)
    assert jobs.sweep() == 0
    clocks.time -= timedelta(hours=1)
    assert jobs.sweep() == 1


@pytest.mark.fault("C6")
def test_many_claim_one_wins(team):
    job = jobs.enqueue(team, "add", {"numbers": []})
    won: list[uuid.UUID] = []
    together = threading.Barrier(6)

    def claim() -> None:
        try:
            together.wait()
            if claimed := jobs.claim(job.id):
                won.append(claimed.token)
        finally:
            connection.close()

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    job.refresh_from_db()
    assert won == [job.token]
    assert job.attempts == 1
