"""What is new since a person's previous visit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.actions.demo.demo_tuning import NOTE
from sessions.actions.policies.policies import preset_version
from sessions.models import Assessment, Job, ModelCall, Session, Simulation, Visit
from tests.sessions.pages import Page, other_team, page_of, signed_in
from tests.sessions.reviewing import item

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def made(name: str, **columns: object) -> Session:
    made = {"team": local_team(), "step_count": 2, "usage_calls": 2, **columns}
    return Session.objects.create(external_id=name, **made)


def ago(**since: float) -> None:
    """Move the person's visit into the past."""
    for visit in Visit.objects.all():
        visit.latest -= timedelta(**since)
        visit.save()


def opened(client: Client) -> Page:
    return page_of(client, "/dashboard/?range=all")


def test_the_second_visit_names_what_came_after_the_first() -> None:
    client = signed_in()
    old = made("old", cost_microusd=9_000_000)
    Session.objects.filter(pk=old.pk).update(created=timezone.now() - timedelta(days=9))
    first = opened(client).text
    assert "Arrived since your last visit" not in first
    assert "Counts sessions added to ContextLab since then, whenever they ran." in first
    ago(days=3)
    first = made("a", cost_microusd=2_000_000, break_count=2, compaction_count=3)
    Assessment.objects.create(session=first, lost_facts=4)
    made("b", cost_microusd=500_000, ended_at=1_700_000_000_000)
    made("theirs", team=other_team(), cost_microusd=7_000_000)
    page = opened(client)
    assert (
        "2 sessions (imported, ran on Nov 14, 2023), $2.50 spent, 3 compactions, "
        "4 lost facts needed again, 2 cache breaks." in page.text
    )
    listed = page_of(client, page.links["2 sessions"])
    assert "arrived since" in listed.text
    assert "a" in listed.links and "b" in listed.links and "old" not in listed.links
    for what in ("3 compactions", "4 lost facts needed again"):
        narrowed = page_of(client, page.links[what]).links
        assert "a" in narrowed and "b" not in narrowed and "old" not in narrowed
    assert "a" in (broken := page_of(client, page.links["2 cache breaks"])).links
    assert "b" not in broken.links


def test_it_names_finished_simulations_and_what_live_agents_spent() -> None:
    client, team = signed_in(), local_team()
    old = made("old", source="api")
    Session.objects.update(created=timezone.now() - timedelta(days=9))
    opened(client)
    ago(days=3)
    text = opened(client).text
    assert "simulation" not in text.partition("Mark as seen")[0] and "live agents" not in text
    version = preset_version(team, "balanced")
    for note, state in (("", "done"), ("", "running"), (NOTE, "done")):
        job = Job.objects.create(team=team, kind="simulate", state=state, finished=timezone.now())
        Simulation.objects.create(team=team, job=job, draft=version, active=version, note=note)
    now = int(timezone.now().timestamp() * 1000)
    for step, at, cost in (
        (1, now - 9 * 86_400_000, 7_000_000),
        (2, now, 1_500_000),
        (3, now, None),
    ):
        ModelCall.objects.create(session=old, call=f"c{step}", step=step, at=at, cost_microusd=cost)
    page = opened(client)
    assert "1 finished simulation" in page.text and "≥ $1.50 spent by live agents" in page.text
    assert page.links["≥ $1.50 spent by live agents"] == "/live/"
    assert page.links["1 finished simulation"].startswith("/lab/")


def test_a_visit_goes_on_until_the_page_is_left_for_half_an_hour() -> None:
    client = signed_in()
    made("a")
    opened(client)
    ago(minutes=29)
    assert "Arrived since your last visit" not in opened(client).text
    ago(minutes=31)
    Session.objects.update(created=timezone.now() - timedelta(days=1))
    assert "nothing new" in opened(client).text
    assert "nothing new" in opened(client).text


def test_any_page_goes_on_with_a_visit() -> None:
    client = signed_in()
    made("a")
    page_of(client, "/sessions/")
    ago(hours=1)
    page_of(client, "/policies/")
    before = Visit.objects.get().previous
    for address in ("/jobs/", "/sessions/"):
        ago(minutes=29)
        page_of(client, address)
    assert before is not None and Visit.objects.get().previous == before
    assert "Arrived since your last visit" in opened(client).text
    ago(minutes=31)
    page_of(client, "/jobs/")
    assert Visit.objects.get().previous != before, "this visit began after half an hour"


def test_pages_in_quick_succession_write_once() -> None:
    client = signed_in()
    made("a")
    page_of(client, "/sessions/")
    for minutes, written in ((1, False), (3, True)):
        ago(minutes=minutes)
        latest = Visit.objects.get().latest
        page_of(client, "/sessions/")
        assert (Visit.objects.get().latest > latest) is written


@pytest.mark.parametrize(
    "headers",
    [{"hx-request": "true"}, {"accept": "application/json"}, {"sec-fetch-mode": "cors"}],
)
def test_what_a_page_fetches_is_no_visit(headers: dict[str, str]) -> None:
    client = signed_in()
    client.get("/sessions/", headers=headers)
    assert not Visit.objects.exists()
    client.get("/sessions/", headers={"accept": "text/html", "sec-fetch-mode": "navigate"})
    assert Visit.objects.exists()


def test_an_open_page_that_updates_itself_is_no_visit() -> None:
    client = signed_in()
    made("a")
    opened(client)
    ago(hours=1)
    opened(client)
    ago(hours=2)
    latest = Visit.objects.get().latest
    answer = client.get("/dashboard/?range=all", headers={"hx-request": "true"})
    assert Visit.objects.get().latest == latest
    assert "Arrived since your last visit" in answer.content.decode()


def test_visits_are_of_a_person_and_a_team() -> None:
    client = signed_in()
    made("a")
    opened(client)
    ago(hours=1)
    theirs = other_team()
    stranger = signed_in(theirs)
    made("other", team=theirs)
    assert "Arrived since your last visit" not in opened(stranger).text
    assert Visit.objects.count() == 2


def test_the_list_marks_what_arrived_since_the_last_visit() -> None:
    client = signed_in()
    old = made("old")
    Session.objects.filter(pk=old.pk).update(created=timezone.now() - timedelta(days=9))
    assert "Only what arrived" not in page_of(client, "/sessions/").text
    ago(days=3)
    made("imported", source="claude-code", ended_at=1_700_000_000_000)
    made("reported", source="api")
    page = page_of(client, "/sessions/")
    rows = page.markup.split("<tr>")[2:]
    assert [">new</span>" in row for row in rows] == [">old</a>" not in row for row in rows]
    assert len(rows) == 3
    narrowed = page_of(client, "/sessions/" + page.links["Only what arrived since your last visit"])
    assert "imported" in narrowed.links and "old" not in narrowed.links
    assert "Only what arrived" not in narrowed.text, "it is what is shown"
    assert "2 sessions (1 imported, ran on Nov 14, 2023)" in opened(client).text


def test_at_a_first_visit_the_arrivals_of_a_day_are_counted() -> None:
    client = signed_in()
    made("a", source="claude-code")
    old = made("old")
    Session.objects.filter(pk=old.pk).update(created=timezone.now() - timedelta(days=2))
    page = opened(client)
    assert "Arrived in the last 24 hours: 1 session (imported, their logs have no times)" in (
        page.text
    )
    assert "old" not in page_of(client, page.links["1 session"]).links


def test_what_is_marked_as_seen_is_no_longer_new() -> None:
    client = signed_in()
    made("a", agent="scout")
    Session.objects.update(created=timezone.now() - timedelta(hours=1))
    page = page_of(client, "/dashboard/?range=all&agent=scout")
    assert "last 24 hours: 1 session" in page.text and "Mark as seen" in page.text
    (url,) = (one for one in page.forms if one.startswith("/dashboard/seen/"))
    answer = client.post(url)
    assert answer.headers["Location"] == "/dashboard/?range=all&team=local&agent=scout"
    page = page_of(client, answer.headers["Location"])
    assert "Arrived since your last visit" in page.text and "nothing new" in page.text
    assert "Mark as seen" not in page.text, "there is nothing to mark"
    made("b")
    assert "): 1 session" in opened(client).text, "and not the one seen"
    stranger = signed_in(theirs := other_team())
    made("c", team=theirs)
    assert "last 24 hours: 1 session" in opened(stranger).text, "it marks those of one's own team"


def test_reviews_are_counted_and_marked_for_sessions_that_arrived() -> None:
    client = signed_in()
    known = item(local_team(), "known")
    Session.objects.update(created=timezone.now() - timedelta(days=9))
    opened(client)
    ago(days=3)
    assert "of their compactions to review" not in opened(client).text, "only its item is new"
    arrived = item(local_team(), "arrived")
    page = opened(client)
    assert "1 of their compactions to review" in page.text
    rows = page_of(client, page.links["1 of their compactions to review"]).html.split("<tr>")
    marked = {
        str(one.pk): ">new</span>" in row
        for one in (known, arrived)
        for row in rows
        if str(one.pk) in row
    }
    assert marked == {str(known.pk): False, str(arrived.pk): True}


def test_sessions_not_assessed_are_said_while_no_job_runs() -> None:
    client = signed_in()
    one = made("a")
    made("b")
    assert "2 sessions not assessed yet" in opened(client).text
    Assessment.objects.create(session=one)
    Session.objects.update(tallied_version=-1)
    assert "1 session not assessed yet" in opened(client).text
