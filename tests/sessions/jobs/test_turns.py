"""Turns: no team waits for all that another one asked for."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta

import pytest
from django.utils import timezone

from contextlab.processes import job_settings
from sessions import tasks
from sessions.actions.imports.uploads import BodyFile, begin_upload
from sessions.actions.jobs import attempts, jobs, leases, turns
from sessions.actions.jobs.attempts import Running
from sessions.models import Job, Team
from tests.sessions.jobs.working import State

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("surroundings"),
]


@pytest.fixture(autouse=True)
def no_turns_yet(monkeypatch, settings):
    turns._last.clear()
    settings.LIVE_JOBS = {"who"}


@pytest.fixture
def other(team) -> Team:
    return Team.objects.create(name="Other", slug="other")


def asked(team: Team, *kinds: str) -> list[Job]:
    return [jobs.enqueue(team, kind, {"numbers": [1]}) for kind in kinds]


def taken(woken: list[Job], queue: str = "") -> list[Job | None]:
    return [turns.take(job.id, queue) for job in woken]


def test_teams_take_turns_and_their_queues_too(team, other):
    many = asked(team, "add", "add", "add", "who")
    few = asked(other, "add", "who", "who")
    order = taken([*many, *few])
    assert order == [many[0], few[0], many[3], few[1], many[1], few[2], many[2]]
    assert taken(many[:1]) == [None]


def test_a_worker_of_one_queue_takes_nothing_else(team, other):
    batch, live = asked(team, "add", "who")
    assert taken([batch], "batch") == [batch]
    theirs, ours = asked(other, "add"), asked(team, "add")
    assert taken([*ours, *theirs], "batch") == [*theirs, *ours]
    assert taken([batch, live], "live") == [live, None]


def test_what_may_not_begin_yet_is_not_taken_with_another(team, other, settings, monkeypatch):
    settings.REDIS_URL = "redis://nowhere"
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    [now] = asked(team, "add")
    later = jobs.enqueue(other, "add", {"numbers": []}, after=1)
    failed = jobs.enqueue(other, "add", {"numbers": []})
    jobs.claim(failed.id)
    assert taken([now, now]) == [now, None]
    assert taken([later]) == [later]


def test_an_attempt_that_failed_rests(team, other, settings):
    settings.REDIS_URL, settings.JOB_RETRY_SECONDS = "redis://nowhere", 5
    [failed], [well] = asked(other, "add"), asked(team, "add")
    token = jobs.claim(failed.id).token
    woken = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "wake", lambda *args: woken.append(args))
        jobs.give_up_attempt(failed.id, token, "It failed.")
    assert woken == [(failed.id, "add", 5)]
    assert taken([well, well]) == [well, None]


def test_one_whose_worker_died_has_its_turn(team, other):
    [mine], [theirs] = asked(team, "add"), asked(other, "add")
    jobs.claim(theirs.id)
    assert taken([mine, mine]) == [mine, None]
    Job.objects.filter(id=theirs.id).update(lease_until=leases.ENDED)
    assert taken([mine]) == [theirs]


def test_many_finished_jobs_and_a_lost_race_are_passed_over(team, monkeypatch):
    [done, lost, mine] = asked(team, "add", "add", "add")
    jobs.cancel(done)
    real = jobs.claim
    monkeypatch.setattr(jobs, "claim", lambda one: None if one == lost.id else real(one))
    assert taken([lost]) == [mine]


def test_a_worker_woken_for_one_runs_the_other(team, other):
    [first, second], [theirs] = asked(team, "add", "add"), asked(other, "add")
    tasks.supervise(first.id)
    tasks.supervise(second.id)
    states = {job.pk: job.state for job in Job.objects.all()}
    assert [states[job.pk] for job in (first, theirs, second)] == [
        State.DONE,
        State.DONE,
        State.QUEUED,
    ]


@pytest.mark.parametrize("waits", ["none", "another team", "a session of ours", "later"])
def test_a_long_job_gives_way_to_those_who_wait(team, other, monkeypatch, waits):
    [job] = asked(team, "add")
    asked(team, "add")
    running = Running(claimed := jobs.claim(job.id), claimed.token)
    if waits == "later":
        jobs.enqueue(other, "add", {}, after=60)
    elif waits != "none":
        asked(*((other, "add") if waits == "another team" else (team, "who")))
    running.give_way()  # its slice is not over
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0)
    if waits in ("none", "later"):
        running.give_way()
        return
    with pytest.raises(jobs.Lost):
        running.give_way()
    job.refresh_from_db()
    assert (job.state, job.attempts, job.token) == (State.QUEUED, 0, None)
    assert job.wake_after <= timezone.now() + timedelta(seconds=1)


def test_each_attempt_imports_a_log_however_long_it_takes_to_open(team, monkeypatch, settings):
    settings.JOB_KINDS = job_settings.JOB_KINDS
    line = '{"type":"user","sessionId":"%s","uuid":"%s","message":{"role":"user","content":"a"}}\n'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for n in range(3):
            archive.writestr(f"{n}.jsonl", line % (n, n))
    import_run = begin_upload(team, [BodyFile("logs.zip", packed.getvalue())])
    monkeypatch.setattr(turns, "others_wait", lambda _: True)
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0)
    for done in (1, 2, 3):
        attempts.attempt(import_run.job_id, jobs.claim(import_run.job_id).token)
        assert import_run.files.filter(state="new").count() == done
    assert Job.objects.get(kind="import").state == State.DONE


def test_an_import_goes_on_where_it_gave_way(team, monkeypatch, settings):
    settings.JOB_KINDS = job_settings.JOB_KINDS
    line = '{"type":"user","sessionId":"%s","uuid":"%s","message":{"role":"user","content":"a"}}\n'
    files = [BodyFile(f"{n}.jsonl", (line % (n, n)).encode()) for n in range(3)]
    import_run = begin_upload(team, files)
    slices = iter([2, 0])
    monkeypatch.setattr(turns, "others_wait", lambda _: next(slices, 1) == 0)
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0)
    for states in (["new", "new", "waiting"], ["new", "new", "new"]):
        attempts.attempt(import_run.job_id, jobs.claim(import_run.job_id).token)
        assert [one.state for one in import_run.files.order_by("pk")] == states
    assert Job.objects.get(kind="import").state == State.DONE
