"""What to do about cache breaks on the dashboard, and the dashboard of an agent or model."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from compaction.cache.causes import AVOIDABLE
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import active_version
from sessions.models import (
    Assessment,
    Session,
)
from sessions.views.dashboard.fixes import CAUSES
from sessions.views.dashboard.ranking import MOST
from tests.sessions.dashboard.broken import made, rows
from tests.sessions.pages import page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def client() -> Client:
    return signed_in()


def test_every_avoidable_cause_has_something_to_do() -> None:
    assert CAUSES.keys() == AVOIDABLE


def test_fixes_are_ranked_by_dollars_and_lead_where_they_are_done(client: Client) -> None:
    one = made({"ttl": 300_000, "system": 900_000, "rewind": 5_000_000, "unexplained": 8_000_000,
                "look_back": None, "images": 0})  # fmt: skip
    made({"ttl": 1_500_000})
    Assessment.objects.create(session=one, hour_saved_microusd=1_800_000)
    page = page_of(client, "/dashboard/")
    assert rows(page) == [
        "Use the 1-hour cache TTL The cache expired between two calls: 2 cache breaks in 2 "
        "sessions. Net of the higher price of writing a 1-hour cache, in the sessions "
        "where it saves; in others it costs more. Set it in the agent: "
        "ENABLE_PROMPT_CACHING_1H=1 for Claude Code, &quot;ttl&quot;: &quot;1h&quot; in "
        "cache_control for the API. $1.80 loses nothing Show breaks",
        "Keep the system prompt constant It changed, so nothing after it was read: 1 cache break "
        "in 1 session. $0.90 at most, loses nothing Show breaks",
    ]
    assert "2 fixes in this range" in page.text
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=ttl&avoidable=1#worst"
    Session.objects.filter(pk=one.pk).update(policy_version=active_version(local_team()))
    page = page_of(client, "/dashboard/")
    assert "Sessions without a policy: set it in the agent: ENABLE_PROMPT_CACHING_1H=1" in page.text
    assert page.links["Change TTL"] == "/policies/balanced/edit/?set=ttl&to=1h"
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=system#worst"


def test_no_more_than_five_and_a_lower_bound_where_a_session_has_no_cost(client: Client) -> None:
    one = made({kind: 100 + i for i, kind in enumerate(sorted(AVOIDABLE))})
    page = page_of(client, "/dashboard/")
    assert len(rows(page)) == MOST < len(AVOIDABLE)
    assert "5 fixes in this range, those that save most" in page.text
    assert not any("≥" in row for row in rows(page))
    made(dict.fromkeys(AVOIDABLE), cost_microusd=None)
    found = rows(page_of(client, "/dashboard/"))
    assert all("≥" in row or "unknown edits" in row for row in found)
    Assessment.objects.create(session=one, lost_facts=4)
    Session.objects.update(tallied_version=-1)
    found = rows(page_of(client, "/dashboard/"))
    assert len(found) == MOST and any("not simulated yet" in row for row in found), "not cut off"


def test_a_split_shows_only_its_sessions_and_stays_in_links(client: Client) -> None:
    made({"model": 300_000}, agent="scout", model="m1")
    made({"ttl": 500_000}, agent="scout", model="m2")
    made({"system": 900_000}, agent="writer", model="m1")
    page = page_of(client, "/dashboard/?range=30d&agent=scout&model=m1")
    assert '<span class="count">1 session</span>' in page.html
    (row,) = rows(page)
    assert row.endswith("$0.30 at most, loses nothing Show breaks")
    assert page.links["7 days"] == "?range=7d&agent=scout&model=m1"
    assert "agent=scout&model=m1" in page.links["List these sessions"]
    assert re.search(r'<option value="scout"\s+selected', page.html)
    assert re.search(r'name="range"\s+value="30d"', page.html)
    page = page_of(client, "/dashboard/?range=30d&agent=scout&model=m3")
    assert "No session of agent scout model m3 in this range (30 days)." in " ".join(
        page.text.split()
    )
    assert page.links["Clear filters"] == "?range=30d"
    assert page_of(client, "/dashboard/?agent=%00").text
    answer = client.get("/api/v1/dashboard?agent=scout&model=m1").json()
    assert (answer["sessions"], answer["unsplit"]) == (1, 0)
    causes = {one["cause"]: one["cost_microusd"] for one in answer["causes"]}
    assert causes == {"model": 300_000}


def test_a_split_asks_as_many_questions_for_many_sessions(client: Client) -> None:
    asked = []
    for many in (1, 30):
        for i in range(many):
            made({"ttl": 300_000}, agent="scout", model=f"m{i}")
        page_of(client, "/dashboard/?agent=scout")  # adds up the days once
        with CaptureQueriesContext(connection) as queries:
            page_of(client, "/dashboard/?agent=scout")
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_agents_of_the_demo_are_no_choice_beside_real_ones(client: Client) -> None:
    made({}, agent="actor", model="m1", demo=True)
    choices = page_of(client, "/dashboard/").html
    assert 'value="actor"' in choices
    made({}, agent="scout", model="m1")
    choices = page_of(client, "/dashboard/").html
    assert 'value="actor"' not in choices
    assert choices.count('value="scout"') == choices.count('value="m1"') == 1


@pytest.mark.parametrize(("saved", "listed"), [(90_000, "$0.090"), (-1, "")])
def test_a_longer_ttl_is_a_fix_only_if_it_pays(client: Client, saved: int, listed: str) -> None:
    one = made({"ttl": 300_000}, AVOIDABLE if saved > 0 else ())
    Assessment.objects.create(session=one, hour_saved_microusd=saved)
    Assessment.objects.create(session=made({"ttl": 9}, ()), hour_saved_microusd=-5_000_000)
    assert [row.rpartition("for the API. ")[2] for row in rows(page_of(client, "/dashboard/"))] == (
        [f"{listed} loses nothing Show breaks"] if listed else []
    )


def test_an_expired_ttl_is_not_avoidable_where_an_hour_costs_more(client: Client) -> None:
    one = made({"ttl": 300_000, "edit": 200_000}, {"edit"})
    columns = {"hour_saved_microusd": -1, "avoidable_microusd": 200_000, "uncached_microusd": 9}
    Assessment.objects.create(session=one, **columns)
    page = page_of(client, "/dashboard/")
    assert "Avoidable spend $0.20" in " ".join(page.text.split())
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=edit#worst"
    cache = " ".join(page_of(client, "/cache/").text.split())
    assert "$0.20 of $5.00 avoidable: 1 cache break, by context edits." in cache
    assert "Keep the TTLAn hour's would not have kept the cache" in cache
    causes = client.get("/api/v1/dashboard").json()["causes"]
    assert {one["cause"]: one["avoidable"] for one in causes} == {"ttl": False, "edit": True}


def test_what_fewer_edits_save_is_unknown_and_comes_after_what_is_known(client: Client) -> None:
    made({"edit": 2_880_000, "model": 100})
    page = page_of(client, "/dashboard/")
    assert [row.rpartition(". ")[2] for row in rows(page)] == [
        "$0.00010 at most, loses nothing Show breaks",
        "unknown edits also make prompts smaller; simulate in the lab Show breaks",
    ]


def test_breaks_without_a_known_cost_are_not_nothing(client: Client) -> None:
    one = made({"edit": None}, agent="scout", cost_microusd=None)
    other = made({}, agent="scout")
    for session, cost in ((one, None), (other, 0)):
        Assessment.objects.create(session=session, uncached_microusd=cost, avoidable_microusd=cost)
    page = page_of(client, "/cache/")
    found = " ".join(page.text.split())
    assert re.search(r"scout ?unknown", found), found
    found = " ".join(page_of(client, "/dashboard/").text.split())
    assert "Avoidable spend ≥$0" in found
