"""What is new since a person's previous visit to the dashboard."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.models import Session, Visit
from tests.sessions.pages import Page, other_team, page_of, signed_in

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
    assert "Since you last opened the dashboard" not in first
    assert "When you come back after 30 minutes or more, this line says what is new" in first
    ago(days=3)
    made("a", cost_microusd=2_000_000, break_count=2)
    made("b", cost_microusd=500_000, ended_at=1_700_000_000_000)
    made("theirs", team=other_team(), cost_microusd=7_000_000)
    page = opened(client)
    assert "2 sessions, $2.50, 2 cache breaks." in page.text
    listed = page_of(client, page.links["2 sessions"])
    assert "stored since" in listed.text
    assert "a" in listed.links and "b" in listed.links and "old" not in listed.links
    assert "a" in (broken := page_of(client, page.links["2 cache breaks"])).links
    assert "b" not in broken.links


def test_a_visit_goes_on_until_the_page_is_left_for_half_an_hour() -> None:
    client = signed_in()
    made("a")
    opened(client)
    ago(minutes=29)
    assert "Since you last opened the dashboard" not in opened(client).text
    ago(minutes=31)
    Session.objects.update(created=timezone.now() - timedelta(days=1))
    assert "nothing new" in opened(client).text
    assert "nothing new" in opened(client).text


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
    assert "Since you last opened the dashboard" in answer.content.decode()


def test_visits_are_of_a_person_and_a_team() -> None:
    client = signed_in()
    made("a")
    opened(client)
    ago(hours=1)
    theirs = other_team()
    stranger = signed_in(theirs)
    made("other", team=theirs)
    assert "Since you last opened the dashboard" not in opened(stranger).text
    assert Visit.objects.count() == 2
