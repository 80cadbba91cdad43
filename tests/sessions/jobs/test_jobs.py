"""Jobs: every one ends, one attempt at a time, and no process is left behind."""

import os
import resource
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from sessions import tasks
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.models import Job, Team
from tests.conftest import ROOT, database_url, wait_until
from tests.sessions import job_settings

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]
State = Job.State


@pytest.fixture
def team() -> Team:
    return local_team()


@pytest.fixture(autouse=True)
def surroundings(settings, monkeypatch) -> Iterator[None]:
    """Job processes see this test's database and kinds; nothing is waited for in between."""
    settings.JOB_KINDS = job_settings.JOB_KINDS
    settings.JOB_RETRY_SECONDS = 0
    monkeypatch.setattr(tasks, "LOOK_SECONDS", 0.02)
    monkeypatch.setenv("DATABASE_URL", database_url())
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.sessions.job_settings")
    yield
    tasks.end_idle(0)


def run(job: Job) -> Job:
    """Run one attempt, like a worker."""
    tasks.run_job(str(job.id))
    job.refresh_from_db()
    return job


def is_gone(pid: int) -> bool:
    """Whether a process is dead, including zombies."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_done_with_result_and_progress(team):
    job = run(jobs.enqueue(team, "add", {"numbers": [1, 2, 3]}))
    assert (job.state, job.result, job.problem) == (State.DONE, {"sum": 6}, None)
    assert (job.done_units, job.total_units, job.unit) == (3, 3, "numbers")
    assert job.finished is not None
    assert job.version > 2


def test_partial(team):
    job = run(jobs.enqueue(team, "half", {}))
    assert (job.state, job.result) == (State.PARTIAL, {"left": 1})


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("fail", "failed with ValueError"),
        ("panic", "failed with BaseException"),
        ("leave", "exited with code 7"),
        ("crash", "killed by SIGSEGV"),
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


def test_content_of_an_error_is_in_no_log(team, capfd):
    run(jobs.enqueue(team, "fail", {}))
    run(jobs.enqueue(team, "panic", {}))
    written = "".join(capfd.readouterr())
    assert "ValueError" in written
    assert "secret" not in written


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


def test_too_long_is_killed(team, settings, tmp_path):
    settings.JOB_SECONDS = 2
    note = tmp_path / "pid"
    job = run(jobs.enqueue(team, "forever", {"note": str(note)}))
    assert job.state == State.QUEUED
    assert is_gone(int(note.read_text()))
    Job.objects.filter(id=job.id).update(attempts=2)
    assert "longer than 2 seconds" in run(job).problem["detail"]


class Worker(threading.Thread):
    """A worker's thread, busy with one job."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self.job = job
        self.start()

    def run(self) -> None:
        try:
            tasks.run_job(str(self.job.id))
        finally:
            connection.close()

    def ended(self) -> None:
        self.join(60)
        assert not self.is_alive()


def test_cancel_kills_the_process(team, tmp_path):
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    worker = Worker(job)
    wait_until(note.exists)
    assert jobs.cancel(job)
    worker.ended()
    job.refresh_from_db()
    assert job.state == State.CANCELLED
    assert is_gone(int(note.read_text()))
    assert not jobs.cancel(job)


def test_cancelled_before_it_began(team):
    job = jobs.enqueue(team, "add", {"numbers": [1]})
    assert jobs.cancel(job)
    assert run(job).state == State.CANCELLED
    assert jobs.retry(job)
    assert run(job).state == State.DONE
    assert not jobs.retry(job)


def test_a_leaving_worker_gives_its_job_back(team, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "leaving", threading.Event())
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    worker = Worker(job)
    wait_until(note.exists)
    tasks.leaving.set()
    worker.ended()
    job.refresh_from_db()
    assert (job.state, job.attempts) == (State.QUEUED, 0)
    assert is_gone(int(note.read_text()))


def test_a_killed_worker_takes_its_job_along(team, tmp_path):
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    script = (
        "import django, sys; django.setup(); from sessions import tasks; tasks.run_job(sys.argv[1])"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", script, str(job.id)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    wait_until(note.exists)
    worker.kill()
    worker.wait()
    wait_until(lambda: is_gone(int(note.read_text())))
    job.refresh_from_db()
    assert job.state == State.RUNNING  # the failure was not reported; the lease will expire


def test_a_lease_that_ran_out_is_swept_and_the_old_holder_writes_no_more(team):
    job = jobs.enqueue(team, "add", {"numbers": []})
    old = jobs.claim(job.id)
    assert jobs.claim(job.id) is None
    assert jobs.sweep() == 0
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
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
        Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    job = run(job)  # the last time that its worker may have died; now it fails by itself
    assert (job.state, job.attempts, job.losses) == (State.QUEUED, 1, 10)
    assert jobs.claim(job.id).attempts == 2
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.claim(job.id) is None
    job.refresh_from_db()
    assert job.state == State.FAILED
    assert "stopped 10 times" in job.problem["detail"]
    assert jobs.retry(job)
    job.refresh_from_db()
    assert (job.attempts, job.losses) == (0, 0)


@pytest.mark.parametrize("ends", ["server", "job"])
def test_a_process_killed_with_its_server_used_up_no_attempt(team, tmp_path, monkeypatch, ends):
    """A service manager signals all processes of a service at once."""
    monkeypatch.setattr(tasks, "leaving", threading.Event())
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    worker = Worker(job)
    wait_until(note.exists)
    os.kill(int(note.read_text()), signal.SIGKILL)
    if ends == "server":
        tasks.leaving.set()
    worker.ended()
    job.refresh_from_db()
    assert (job.state, job.attempts) == (State.QUEUED, 0 if ends == "server" else 1)


def test_a_job_whose_fork_server_died_used_up_no_attempt(team, tmp_path):
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    worker = Worker(job)
    wait_until(note.exists)
    pid = int(note.read_text())
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(stat[1]), signal.SIGKILL)
    worker.ended()
    assert is_gone(pid)
    job.refresh_from_db()
    assert (job.state, job.attempts) == (State.RUNNING, 1)  # its lease will expire
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    claimed = jobs.claim(job.id)
    assert (claimed.attempts, claimed.losses) == (1, 1)


def test_a_renewed_lease_holds(team):
    job = jobs.enqueue(team, "add", {"numbers": []})
    held = jobs.claim(job.id)
    Job.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    jobs.renew(job.id, held.token)
    assert jobs.claim(job.id) is None


def test_the_start_of_the_only_server_frees_everything(team):
    running, queued = (jobs.enqueue(team, "add", {"numbers": []}) for _ in range(2))
    jobs.claim(running.id)
    jobs.requeue_all()
    assert jobs.sweep() == 2
    assert jobs.claim(running.id)
    assert jobs.claim(queued.id)


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


def test_one_unfinished_job_per_key(team):
    first = jobs.enqueue(team, "add", {"numbers": [1]}, dedupe="same")
    assert jobs.enqueue(team, "add", {"numbers": [2]}, dedupe="same").id == first.id
    other = Team.objects.create(name="Other", slug="other")
    assert jobs.enqueue(other, "add", {"numbers": [2]}, dedupe="same").id != first.id
    run(first)
    assert jobs.enqueue(team, "add", {"numbers": [2]}, dedupe="same").id != first.id


def test_a_rolled_back_request_leaves_no_job(team, monkeypatch):
    woken: list[uuid.UUID] = []
    monkeypatch.setattr(jobs, "wake", lambda job_id, _after: woken.append(job_id))
    with pytest.raises(RuntimeError), transaction.atomic():
        jobs.enqueue(team, "add", {"numbers": []})
        raise RuntimeError
    assert not Job.objects.exists()
    with transaction.atomic():
        job = jobs.enqueue(team, "add", {"numbers": []})
        assert not woken
    assert woken == [job.id]


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


def test_a_process_goes_on_with_the_next_job(team):
    first, second = (run(jobs.enqueue(team, "who", {})).result for _ in range(2))
    assert second == {"pid": first["pid"], "before": 1}
    tasks.end_idle()
    assert not is_gone(first["pid"])
    tasks.end_idle(0)
    assert is_gone(first["pid"])
    assert run(jobs.enqueue(team, "who", {})).result["before"] == 0


def test_a_spare_process_ends_sooner_than_the_last_used(team, tmp_path, monkeypatch):
    note = tmp_path / "pid"
    worker = Worker(jobs.enqueue(team, "until", {"note": str(note)}))
    wait_until(note.exists)
    spare = run(jobs.enqueue(team, "who", {})).result["pid"]
    (tmp_path / "go").touch()
    worker.ended()
    tasks.end_idle()
    assert not is_gone(spare)
    monkeypatch.setattr(tasks, "SPARE_SECONDS", 0.0)
    tasks.end_idle()
    assert is_gone(spare)
    assert not is_gone(int(note.read_text()))


def test_a_refusal_harms_no_one_but_an_error_ends_the_process(team):
    pid = run(jobs.enqueue(team, "who", {})).result["pid"]
    run(jobs.enqueue(team, "refuse", {}))
    assert run(jobs.enqueue(team, "who", {})).result == {"pid": pid, "before": 1}
    run(jobs.enqueue(team, "fail", {}))
    assert is_gone(pid)
    assert run(jobs.enqueue(team, "who", {})).result["before"] == 0


def test_a_process_that_died_while_it_waited_costs_no_attempt(team):
    pid = run(jobs.enqueue(team, "who", {})).result["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_gone(pid))
    job = run(jobs.enqueue(team, "who", {}))
    assert (job.state, job.attempts, job.result["before"]) == (State.DONE, 1, 0)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server to restart")
def test_a_process_outlives_a_restart_of_the_database(team):
    pid = run(jobs.enqueue(team, "who", {})).result["pid"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    job = run(jobs.enqueue(team, "who", {}))
    assert (job.state, job.attempts, job.result["pid"]) == (State.DONE, 1, pid)


def test_a_server_with_a_thousand_pages_runs_jobs(team):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    pages = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    try:
        assert run(jobs.enqueue(team, "who", {})).state == State.DONE
    finally:
        for fd in pages:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_is_not_taken_where_it_would_be_started_otherwise(team, monkeypatch):
    pid = run(jobs.enqueue(team, "who", {})).result["pid"]
    monkeypatch.setenv("CONTEXTLAB_JOB_MB", "3000")
    assert run(jobs.enqueue(team, "who", {})).result["pid"] != pid
    assert is_gone(pid)
