"""The process of a job: it ends with its job or its worker, or goes on with the next job."""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import connection

from sessions import tasks
from sessions.actions.jobs import jobs, leases
from sessions.models import Job
from tests.conftest import ROOT, wait_until
from tests.sessions.jobs.working import State, Worker, is_gone, run

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("surroundings"),
]


@pytest.mark.fault("C9")
def test_too_long_is_killed(team, settings, tmp_path):
    settings.JOB_SECONDS = 2
    note = tmp_path / "pid"
    job = run(jobs.enqueue(team, "forever", {"note": str(note)}))
    assert job.state == State.QUEUED
    assert is_gone(int(note.read_text()))
    Job.objects.filter(id=job.id).update(attempts=2)
    assert "longer than 2 seconds" in run(job).problem["detail"]


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


@pytest.mark.fault("C1")
def test_a_killed_worker_takes_its_job_along(team, tmp_path):
    note = tmp_path / "pid"
    job = jobs.enqueue(team, "forever", {"note": str(note)})
    script = "import django, sys; django.setup(); from sessions.tasks import supervise"
    script += "; supervise(sys.argv[1])"
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
    wait_until(lambda: is_gone(pid))
    job.refresh_from_db()
    assert (job.state, job.attempts) == (State.RUNNING, 1)  # its lease will expire
    Job.objects.update(lease_until=leases.ENDED)
    claimed = jobs.claim(job.id)
    assert (claimed.attempts, claimed.losses) == (1, 1)


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
