"""What a person prefers, and where pages follow it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.actions.accounts.teams import local_team, local_user
from sessions.models import Preferences, Session
from tests.sessions.people import browser, shown

pytestmark = pytest.mark.django_db

BERLIN_MIDNIGHT = int(datetime(2026, 11, 16, 23, 30, tzinfo=UTC).timestamp() * 1000)
"""Nov 16 in UTC, Nov 17 in Berlin."""


@pytest.fixture
def client() -> Client:
    Session.objects.create(team=local_team(), external_id="s", ended_at=BERLIN_MIDNIGHT)
    return browser(local_user())


def save(client: Client, **chosen: str) -> Any:
    return client.post("/account/", {"act": "preferences", **chosen})


def test_they_hold_in_this_browser_and_after_the_next_sign_in(client: Client):
    client.cookies["contextlab_theme"] = "light"
    saved = save(client, theme="dark", time_zone="Europe/Berlin", less_motion="on")
    assert saved.status_code == 302 and saved.cookies["contextlab_theme"].value == ""
    for one in (client, browser(local_user())):
        html = shown(one.get("/account/")).html
        for part in ('data-theme="dark"', 'data-zone="Europe/Berlin"', 'data-motion="less"'):
            assert part in html
        assert '<option value="Europe/Berlin" selected>' in html
    client.cookies["contextlab_theme"] = "light"
    assert 'data-theme="light"' in shown(client.get("/account/")).html, "chosen in the header"
    assert 'data-theme="system"' in shown(browser(None).get("/login/")).html


@pytest.mark.parametrize(
    "chosen",
    [{"theme": "pink"}, {"time_zone": "Mars/Base"}, {"first_page": "logout"},
     {"date_range": "century"}],
)  # fmt: skip
def test_what_is_not_offered_is_refused(client: Client, chosen: dict[str, str]):
    assert "not one of the available choices" in shown(save(client, **chosen), 422).text
    assert not Preferences.objects.exists()


def test_days_and_times_are_those_of_the_time_zone(client: Client):
    day = "/sessions/?from=2026-11-17&to=2026-11-17"
    assert "Nothing matches" in shown(client.get(day)).text
    save(client, time_zone="Europe/Berlin")
    page = shown(client.get(day))
    assert "Nov 17, 2026, 00:30 CET" in page.html and "Days in Europe/Berlin." in page.text
    assert "Nov 17, 2026 to Nov 17, 2026" in page.text
    assert timezone.get_current_timezone_name() == "UTC", "it ends with the request"
    Preferences.objects.update(time_zone="Gone/Zone")
    assert "Nothing matches" in shown(browser(local_user()).get(day)).text


def test_the_first_page_and_the_range_are_chosen(client: Client):
    assert client.get("/")["Location"] == "/dashboard/"
    save(client, first_page="search", date_range="30d")
    assert client.get("/")["Location"] == "/search/"
    for page in ("/dashboard/", "/cache/"):
        assert client.get(page).context["period"].name == "30d"
        assert client.get(f"{page}?range=24h").context["period"].name == "24h"


def test_they_cost_no_query(client: Client):
    client.get("/sessions/")
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get("/sessions/")
        counts.append(len(queries))
        save(client, time_zone="Europe/Berlin", theme="dark")
        client.get("/account/")
    assert counts[0] == counts[1]
