"""Jobs on pages: progress, time left, result, and actions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulations import KIND as SIMULATION
from sessions.actions.policies.policies import preset_version
from sessions.actions.record.append import append
from sessions.models import Import, ImportFile, Job, Session, Simulation
from sessions.views.jobs.jobs import Progress
from tests.sessions.made import count, reading
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = pytest.mark.django_db
State = Job.State


@pytest.fixture
def client() -> Client:
    return signed_in()


def job(state: str = State.RUNNING, seconds: float = 10, **columns: Any) -> Job:
    now = timezone.now()
    ended = now if state not in (State.QUEUED, State.RUNNING) else None
    columns = {"kind": "simulate", "started": now - timedelta(seconds=seconds)} | columns
    return Job.objects.create(team=local_team(), state=state, finished=ended, **columns)


def test_a_running_job_shows_how_far_it_is_and_how_long_still(client: Client):
    running = job(done_units=42, total_units=100, unit="sessions", seconds=21)
    page = page_of(client, f"/jobs/{running.pk}/")
    assert page.title == "42 % · Simulated replay · ContextLab"
    assert "42 of 100 sessions" in page.text
    assert "2.0 sessions/s" in page.text
    assert "about 29 s left" in page.text
    assert 'role="progressbar"' in page.html
    assert 'aria-valuetext="42 of 100 sessions"' in page.html
    assert f'data-topic="job:{running.pk}" data-version="1"' in page.markup
    assert f"/jobs/{running.pk}/cancel/" in page.forms


@pytest.mark.parametrize(
    ("columns", "share", "rate", "left"),
    [
        ({"done_units": 10, "total_units": 100, "seconds": 4}, 0.1, False, False),
        ({"done_units": 10, "total_units": 100, "seconds": 6}, 0.1, True, True),
        ({"done_units": 10, "total_units": None, "seconds": 6}, None, True, False),
        ({"done_units": 0, "total_units": 100, "seconds": 60}, 0.0, False, False),
        ({"done_units": 0, "total_units": 0, "seconds": 60}, None, False, False),
        ({"done_units": 9, "total_units": 9, "seconds": 60, "state": "done"}, 1.0, False, False),
    ],
)
def test_a_forecast_is_made_only_when_it_means_something(
    columns: dict[str, Any], share: float | None, rate: bool, left: bool
):
    progress = Progress.of(job(**columns))
    assert progress.share == share
    assert (progress.per_second is not None, progress.seconds_left is not None) == (rate, left)


@pytest.mark.parametrize(
    ("state", "action", "says"),
    [
        (State.QUEUED, "cancel", "Waiting for a free worker"),
        (State.RUNNING, "cancel", "Beginning"),
        (State.DONE, None, "Done, after 10 s"),
        (State.PARTIAL, None, "Done in part"),
        (State.FAILED, "retry", "It broke. In the middle. Mend it."),
        (State.CANCELLED, "retry", "What was done until then stays"),
    ],
)
def test_every_state_offers_what_can_be_done(
    client: Client, state: str, action: str | None, says: str
):
    problem = {"title": "It broke.", "detail": "In the middle.", "action": "Mend it."}
    found = job(state, problem=problem if state == State.FAILED else None)
    page = page_of(client, f"/jobs/{found.pk}/")
    assert says in page.text
    offered = {form for form in page.forms if f"/jobs/{found.pk}/" in form}
    assert offered == ({f"/jobs/{found.pk}/{action}/"} if action else set())
    assert ("data-topic" in page.html) == (state in (State.QUEUED, State.RUNNING))


def test_a_result_is_shown_in_numbers_and_leads_to_what_it_made(client: Client):
    session = append(local_team(), reading(1), count, source="test").session
    result = {"session": str(session.pk), "run": "r1", "steps_done": 1200, "sure": True}
    done = job(State.DONE, result=result)
    page = page_of(client, f"/jobs/{done.pk}/")
    assert page.links["Simulated replay of Please read the files."] == (
        f"/sessions/{session.pk}/?run=r1"
    )
    assert "<dt>Steps done</dt><dd>1,200</dd>" in page.markup
    assert "<dt>Sure</dt>" not in page.html


def test_a_result_that_names_a_foreign_session_leads_nowhere(client: Client):
    session = append(other_team(), reading(1), count, source="test").session
    done = job(State.DONE, result={"session": str(session.pk)}, payload={"session": "nonsense"})
    assert str(session.pk) not in page_of(client, f"/jobs/{done.pk}/").html


def test_cancel_and_retry_lead_back_to_the_job(client: Client):
    found = job(State.QUEUED)
    address = f"/jobs/{found.pk}/"
    assert client.post(f"{address}cancel/").headers["Location"] == address
    found.refresh_from_db()
    assert found.state == State.CANCELLED
    assert client.post(f"{address}cancel/").status_code == 302, "twice is as good as once"
    client.post(f"{address}retry/")
    found.refresh_from_db()
    assert found.state == State.QUEUED


def test_the_page_of_a_job_that_left_nothing_says_so(client: Client):
    ended = job(State.RUNNING)
    link = f"/jobs/{ended.pk}/"
    assert link in page_of(client, "/jobs/").html
    ended.delete()
    said = client.get(link)
    assert said.status_code == 404 and "leave nothing behind" in said.content.decode()
    assert "leave nothing behind" not in client.get("/sessions/none/").content.decode()


@pytest.mark.fault("H6")
def test_what_changes_a_job_must_be_a_post_of_our_own_form(client: Client):
    found = job(State.QUEUED)
    assert client.get(f"/jobs/{found.pk}/cancel/").status_code == 405
    client.handler.enforce_csrf_checks = True
    assert client.post(f"/jobs/{found.pk}/cancel/").status_code == 403
    found.refresh_from_db()
    assert found.state == State.QUEUED


def test_a_foreign_job_looks_like_a_missing_one(client: Client):
    found = job(State.QUEUED)
    stranger = signed_in(other_team())
    assert stranger.get(f"/jobs/{found.pk}/").status_code == 404
    for action in ("cancel", "retry"):
        assert stranger.post(f"/jobs/{found.pk}/{action}/").status_code == 404
    assert str(found.pk) not in page_of(stranger, "/jobs/").html
    found.refresh_from_db()
    assert found.state == State.QUEUED


def test_jobs_are_listed_newest_first_and_the_unfinished_ones_are_watched(client: Client):
    assert "No jobs yet" in page_of(client, "/jobs/").text
    running = job(done_units=1, total_units=4)
    failed = job(State.FAILED, problem={"title": "It broke.", "detail": "", "action": ""})
    page = page_of(client, "/jobs/")
    html = page.html
    assert html.index(f"/jobs/{failed.pk}/") < html.index(f"/jobs/{running.pk}/")
    assert f'data-topic="job:{running.pk}"' in html
    assert f'data-topic="job:{failed.pk}"' not in html
    assert "It broke." in page.text


def test_a_long_list_has_pages(client: Client):
    for _ in range(51):
        job(State.DONE)
    page = page_of(client, "/jobs/")
    assert page.html.count("data-open") == 50
    older = page_of(client, f"/jobs/{page.links['Older ›']}")
    assert older.html.count("data-open") == 1
    assert page_of(client, f"/jobs/{older.links['‹ Newer']}").html.count("data-open") == 50


@pytest.mark.parametrize("address", ["/jobs/", "/imports/"])
@pytest.mark.parametrize("key", ["5", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00", "x"])
def test_a_cursor_of_another_list_does_no_harm(client: Client, address: str, key: str):
    assert client.get(address, {"cursor": f"o~{key}~{'0' * 32}"}).status_code == 200


def test_a_row_says_what_its_job_is_about(client: Client):
    session = Session.objects.create(team=local_team(), external_id="a", title="Move the port")
    job(kind="compact", payload={"session": str(session.pk)})
    version = preset_version(local_team(), "balanced")
    simulated = job(kind=SIMULATION)
    Simulation.objects.create(team=local_team(), draft=version, active=version, job=simulated)
    job(kind="notify")
    for paths in (["a.jsonl"], ["b.jsonl", "c.jsonl"]):
        run = Import.objects.create(team=local_team(), job=job(kind="import"))
        for path in paths:
            ImportFile.objects.create(import_run=run, path=path)
    text = page_of(client, "/jobs/").text
    assert "Import a.jsonl " in text and "Import b.jsonl and 1 more " in text
    assert "Compaction Move the port " in text
    assert "Simulation balanced@1 " in text
