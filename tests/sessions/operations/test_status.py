"""The status of the server: figures, who sees them, and retries."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from sessions.actions.accounts.teams import local_user, team_called
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.operations import seen, stored
from sessions.actions.operations.seen import Heartbeat
from sessions.models import AuditEntry, Blob, Job, RemovedObject, SeenProcess, StoredBytes, Team
from sessions.signals import blobs_go
from tests.sessions.web.world import browser_of

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db,
    pytest.mark.usefixtures("jobs_wait"),
]
PAGE = "/settings/server/"


@pytest.fixture
def local() -> Team:
    local_user()
    return Team.objects.get(slug="local")


@pytest.fixture
def other() -> Team:
    return team_called("other")[0]


def failed(team: Team) -> Job:
    job = enqueue(team, "import", {})
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.FAILED, finished=timezone.now(), problem={"title": "It did not work"}
    )
    return job


def store(team: Team, *contents: bytes) -> list[Blob]:
    return Blob.objects.bulk_create([Blob.of(team.pk, one) for one in contents])


def test_only_who_runs_the_server_sees_it(local: Team, other: Team):
    job = failed(other)
    retry = f"{PAGE}jobs/{job.pk}/retry/"
    for team, role in ((other, "owner"), (local, "editor"), (local, "viewer")):
        browser = browser_of(team, role)
        assert browser.get(PAGE).status_code == 404
        assert browser.post(retry).status_code == 404
        assert PAGE not in browser.get("/settings/members/").content.decode()
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    owner = browser_of(local, "owner")
    assert owner.get(PAGE).status_code == 200
    assert PAGE in owner.get("/settings/members/").content.decode()
    over_all = browser_of(other, "viewer")
    User.objects.filter(username__startswith="viewer", memberships__team=other).update(
        is_superuser=True
    )
    assert over_all.get(PAGE).status_code == 200


def test_a_failed_job_of_any_team_is_retried_and_its_team_learns_it(local: Team, other: Team):
    job, owner = failed(other), browser_of(local, "owner")
    assert "It did not work" in owner.get(PAGE).content.decode()
    assert owner.post(f"{PAGE}jobs/{job.pk}/retry/").status_code == 302
    job.refresh_from_db()
    assert job.state == Job.State.QUEUED
    entry = AuditEntry.objects.get(team=other, action="job.retried")
    assert (entry.named, entry.via) == (str(job.pk), "person")


def status(capsys: pytest.CaptureFixture[str]) -> dict:
    call_command("status", "--json")
    return json.loads(capsys.readouterr().out)


def test_queues_have_depth_and_age(local: Team, capsys: pytest.CaptureFixture[str]):
    old = enqueue(local, "import", {})
    Job.objects.filter(pk=old.pk).update(created=timezone.now() - timedelta(hours=2))
    enqueue(local, "tend", {})
    running = enqueue(local, "share", {})
    Job.objects.filter(pk=running.pk).update(state=Job.State.RUNNING)
    live, batch = status(capsys)["queues"]
    assert (live["queued"], live["running"], live["kinds"]) == (1, 1, {"tend": 1, "share": 1})
    assert batch["kinds"]["import"] == 1
    assert batch["oldest_seconds"] >= 7200


def test_processes_run_are_lost_and_stop(local: Team, capsys: pytest.CaptureFixture[str]):
    web = Heartbeat(SeenProcess.Kind.WEB, "1.0")
    web.say()
    web.say()
    lost, gone = (Heartbeat(SeenProcess.Kind.WORKER, "1.0") for _ in range(2))
    for one, age in ((lost, timedelta(minutes=5)), (gone, timedelta(days=2))):
        one.say()
        SeenProcess.objects.filter(pk=one.id).update(seen=timezone.now() - age)
    ended = Heartbeat(SeenProcess.Kind.WORKER, "1.0")
    ended.say()  # forgets the one that was silent for two days
    ended.end()
    found = [(row["kind"], row["state"]) for row in status(capsys)["processes"]]
    assert found == [("web", "running"), ("worker", "lost"), ("worker", "stopped")]


def test_a_process_says_so_twice_a_minute(local: Team, monkeypatch: pytest.MonkeyPatch):
    now = [1000.0]
    monkeypatch.setattr(seen.time, "monotonic", lambda: now[0])
    web, early = Heartbeat(SeenProcess.Kind.WEB, "1.0"), timezone.now() - timedelta(hours=1)
    web.say()
    for later, said in ((29, False), (31, True)):
        SeenProcess.objects.update(seen=early)
        now[0] = 1000.0 + later
        web.say()
        assert (SeenProcess.objects.get().seen > early) == said


def test_storage_counts_what_is_new_and_takes_off_what_is_erased(local: Team, other: Team):
    stored._settled = 0
    noise = bytes(range(100))  # too short to be compressed
    mine = store(local, noise, noise + b"1") + store(other, noise)
    for passes in (1, 2, 3):
        stored.count_new()
        counted = {row.team_id: (row.bytes, row.blobs) for row in StoredBytes.objects.all()}
        # Only what was there at the pass before is counted, and once.
        expected = {} if passes == 1 else {local.pk: (201, 2), other.pk: (100, 1)}
        assert counted == expected
    blobs_go.send(Team, team=local, shas=[mine[0].sha])
    mine[0].delete()
    store(local, b"later")
    stored.count_new()
    stored.count_new()
    row = StoredBytes.objects.get(team=local)
    assert (row.bytes, row.blobs) == (106, 2)


def test_where_objects_are_and_how_many_are_left(
    local: Team, settings: Any, capsys: pytest.CaptureFixture[str]
):
    owner = browser_of(local, "owner")
    assert "Objects in" not in owner.get(PAGE).content.decode()
    settings.BLOBS = "s3://lab/contextlab"
    RemovedObject.objects.create(name="blobs/one")
    assert "s3://lab/contextlab</code>, 1 to remove" in owner.get(PAGE).content.decode()
    call_command("status")
    assert "objects: s3://lab/contextlab, 1 to remove\n" in capsys.readouterr().out


def test_storage_is_counted_in_parts(local: Team, monkeypatch: pytest.MonkeyPatch):
    stored._settled = 0
    monkeypatch.setattr(stored, "BLOBS_AT_ONCE", 2)
    store(local, *(b"x" * number for number in range(1, 6)))
    for parts in (0, 2, 4, 5, 5):
        stored.count_new()
        assert getattr(StoredBytes.objects.first(), "blobs", 0) == parts
