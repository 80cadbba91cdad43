"""Jobs: every one ends, and says how."""

import uuid

import pytest
from django.db import transaction
from django.utils import timezone

from sessions import metrics
from sessions.actions.jobs import jobs
from sessions.log_context import with_ids
from sessions.models import Job, Team
from tests.sessions.jobs.working import State, run

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("surroundings"),
]


def test_done_with_result_and_progress(team):
    job = run(jobs.enqueue(team, "add", {"numbers": [1, 2, 3]}))
    assert (job.state, job.result, job.problem) == (State.DONE, {"sum": 6}, None)
    assert (job.done_units, job.total_units, job.unit) == (3, 3, "numbers")
    assert job.finished is not None
    assert job.version > 2


def test_partial(team):
    job = run(jobs.enqueue(team, "half", {}))
    assert (job.state, job.result) == (State.PARTIAL, {"left": 1})


@pytest.mark.fault("C2")
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("fail", "failed with ValueError"),
        ("panic", "failed with BaseException"),
        ("leave", "exited with code 7"),
        ("crash", "killed by SIGSEGV"),
        pytest.param("gorge", "failed with MemoryError", marks=pytest.mark.fault("C8")),
    ],
)
def test_three_attempts_then_failed_with_the_reason(team, kind, says):
    job = jobs.enqueue(team, kind, {})
    assert run(job).state == State.QUEUED
    assert run(job).state == State.QUEUED
    job = run(job)
    assert (job.state, job.attempts) == (State.FAILED, 3)
    assert says in job.problem["detail"]
    assert job.problem["action"]
    assert "secret" not in str(job.problem)
    assert run(job).attempts == 3


@pytest.mark.fault("K2")
def test_content_of_an_error_is_in_no_log(team, capfd, monkeypatch):
    monkeypatch.setenv("FORKED_BY", "a server that writes to what capfd reads")
    run(jobs.enqueue(team, "fail", {}))
    run(jobs.enqueue(team, "panic", {}))
    written = "".join(capfd.readouterr())
    assert "ValueError" in written
    assert "secret" not in written


@pytest.mark.parametrize(
    ("kind", "level", "result"),
    [
        ("add", "INFO", "done"),
        ("half", "INFO", "partial"),
        ("refuse", "WARNING", "failed"),
    ],
)
def test_each_end_is_a_line_and_counted_as_what_it_is(
    team, kind, level, result, capfd, monkeypatch
):
    monkeypatch.setenv("FORKED_BY", f"a server for {kind} that writes to what capfd reads")
    monkeypatch.setenv("CONTEXTLAB_LOG_LEVEL", "INFO")
    counted = metrics.JOBS.labels(kind, result)
    before = counted._value.get()
    with with_ids(request="asked-1"):
        job = jobs.enqueue(team, kind, {"numbers": [1]})
    run(job)
    lines = [line for line in "".join(capfd.readouterr()).splitlines() if " ended: " in line]
    assert [f"{kind} job ended: {result}" in line for line in lines] == [True]
    assert f" {level} " in lines[0] and f"job={job.pk}" in lines[0]
    assert "request=asked-1" in lines[0] and "picture" not in lines[0]
    assert ("[PermanentFailure at " in lines[0]) == (result == "failed")
    assert counted._value.get() == before + 1


def test_an_attempt_that_failed_in_its_process_is_counted_as_failed(team):
    counted = metrics.JOBS.labels("fail", "failed")
    before = counted._value.get()
    run(jobs.enqueue(team, "fail", {}))
    assert counted._value.get() == before + 1


def test_refused_is_not_tried_again(team):
    job = run(jobs.enqueue(team, "refuse", {}))
    assert (job.state, job.attempts) == (State.FAILED, 1)
    assert job.problem["title"] == "No log"


def test_a_kind_this_server_does_not_know(team):
    job = jobs.enqueue(team, "add", {})
    Job.objects.filter(id=job.id).update(kind="newer")
    assert "does not know" in run(job).problem["title"]
    with pytest.raises(KeyError):
        jobs.enqueue(team, "unheard-of", {})


def test_cancelled_before_it_began(team):
    job = jobs.enqueue(team, "add", {"numbers": [1]})
    assert jobs.cancel(job)
    assert run(job).state == State.CANCELLED
    assert jobs.retry(job)
    assert run(job).state == State.DONE
    assert not jobs.retry(job)


def test_one_unfinished_job_per_key(team):
    first = jobs.enqueue(team, "add", {"numbers": [1]}, dedupe="same")
    assert jobs.enqueue(team, "add", {"numbers": [2]}, dedupe="same").id == first.id
    other = Team.objects.create(name="Other", slug="other")
    assert jobs.enqueue(other, "add", {"numbers": [2]}, dedupe="same").id != first.id
    run(first)
    assert jobs.enqueue(team, "add", {"numbers": [2]}, dedupe="same").id != first.id


def test_a_rolled_back_request_leaves_no_job(team, monkeypatch):
    woken: list[uuid.UUID] = []
    monkeypatch.setattr(jobs, "wake", lambda job_id, *_: woken.append(job_id))
    with pytest.raises(RuntimeError), transaction.atomic():
        jobs.enqueue(team, "add", {"numbers": []})
        raise RuntimeError
    assert not Job.objects.exists()
    with transaction.atomic():
        job = jobs.enqueue(team, "add", {"numbers": []})
        assert not woken
    assert woken == [job.id]


@pytest.mark.fault("C3")
def test_no_broker_is_no_reason_to_fail(team, settings, monkeypatch):
    from celery import current_app
    from kombu.exceptions import OperationalError

    def gone(*args, **kwargs):
        raise OperationalError("redis://:password@host")

    settings.REDIS_URL = "redis://nowhere.invalid"
    monkeypatch.setattr(type(current_app._get_current_object()), "send_task", gone)
    monkeypatch.setattr("sessions.live.hint", lambda *_: None)
    job = jobs.enqueue(team, "add", {"numbers": []})
    assert job.wake_after > timezone.now()
    Job.objects.update(wake_after=timezone.now())
    assert jobs.sweep() == 1
