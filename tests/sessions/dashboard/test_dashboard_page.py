"""The dashboard's page and its twin in the API: ranges, provenance, tables, links, empty states."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.accounts.keys import create_key
from sessions.actions.accounts.teams import local_team
from sessions.models import Assessment, FactLedger, Revision, Run, Session
from sessions.models.dashboard.tiles import TILES
from sessions.models.record.list_versions import list_version
from sessions.models.web.periods import DAY, written
from sessions.views.dashboard.charts import days_of
from tests.sessions.pages import Page, other_team, page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def client() -> Client:
    return signed_in()


def now() -> int:
    return int(timezone.now().timestamp() * 1000)


def made(name: str, days_ago: float = 0.0, **columns: Any) -> Session:
    at = now() - int(days_ago * DAY)
    return Session.objects.create(
        team=columns.pop("team", local_team()), external_id=name, ended_at=at,
        **{"step_count": 4, "usage_calls": 4, **columns},
    )  # fmt: skip


def test_a_part_of_several_days_is_named_by_its_first_and_last() -> None:
    july = 1_752_451_200_000
    assert days_of(july, 28 * DAY) == "Jul 14 – Aug 10, 2025"
    assert days_of(july, 364 * DAY) == "Jul 14, 2025 – Jul 12, 2026"
    assert days_of(july, DAY) == july


@pytest.fixture
def week() -> list[Session]:
    """Three sessions of this week, one without usage, and one of the previous week."""
    found = [
        made("a", cost_microusd=2_500_000, cache_read_tokens=900, uncached_tokens=100,
             window=1000, peak_tokens=850, peak_measured=True, title="<b>dear</b>"),
        made("b", cost_microusd=500_000, uncached_tokens=1000, window=1000, peak_tokens=100,
             peak_measured=True),
        made("c", usage_calls=0),
        made("before", 8.0, cost_microusd=1_000_000, uncached_tokens=10),
    ]  # fmt: skip
    Assessment.objects.create(
        session=found[0], steps=4, uncached_microusd=1_000_000, write_microusd=700_000,
        read_microusd=300_000, output_microusd=500_000, avoidable_microusd=200_000,
        unexplained_microusd=150_000,
    )  # fmt: skip
    return found


def tile(page: Page, name: str) -> str:
    """The text of one row of the table of figures."""
    found = re.search(rf'<tr[^>]*aria-labelledby="tile-{name}".*?</tr>', page.html, re.S)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def hero(page: Page, name: str) -> str:
    """The text of one of the four tiles."""
    found = re.search(rf'<article[^>]*aria-labelledby="hero-{name}".*?</article>', page.html, re.S)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def panel(page: Page) -> str:
    """The text of the answers."""
    found = re.search(r'<section[^>]*aria-labelledby="answers".*?</section>', page.html, re.S)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split())


def test_without_a_session_it_leads_to_the_first_run(client: Client):
    assert client.get("/dashboard/").headers["Location"] == "/start/"
    made("theirs", team=other_team())
    assert client.get("/dashboard/").headers["Location"] == "/start/"


def test_a_row_says_its_value_its_change_and_which_sessions_count(
    client: Client, week: list[Session]
):
    page = page_of(client, "/dashboard/")
    spend = tile(page, "spend")
    assert spend.startswith("Spend $3.00 $1.00 +200 % per session $1.50")
    assert spend.endswith("2 of 3 ; 1 without reported usage")
    assert tile(page, "cache").startswith("Cache read share 45 % 0 % +45 points")
    assert "unknown – – No compaction in this range has a ledger" in tile(page, "ledger")
    assert tile(page, "window").startswith("Peak window fill median 10 % – –")
    assert "Half of 2 sessions stay at or below 10 %" in page.html
    assert "<b>dear" not in page.html


def test_what_is_not_assessed_is_not_called_free_of_failures(client: Client, week: list[Session]):
    failures = tile(page_of(client, "/dashboard/"), "failures")
    assert "No log in this range records a failed tool call. 0 of 3" in failures
    assert "3; 1 without a failed call" in failures
    assert failures.endswith("2 not assessed yet")
    Assessment.objects.all().delete()
    Session.objects.update(version=1)
    page = page_of(client, "/dashboard/")
    for name in ("failures", "avoidable", "recall"):
        assert "unknown – – No session in this range has been assessed yet." in tile(page, name)
    assert "unknown No session in this range has been assessed yet." in hero(page, "avoidable")


def test_a_part_that_is_a_lower_bound_makes_one_of_the_sum(client: Client, week: list[Session]):
    assert "≥" not in tile(page_of(client, "/dashboard/"), "spend")
    Session.objects.filter(pk=week[0].pk).update(cost_at_least=True, version=1)
    Session.objects.filter(pk=week[1].pk).update(usage_calls=3, version=1)
    page = page_of(client, "/dashboard/")
    spend = tile(page, "spend")
    assert spend.startswith("Spend ≥ $3.00")
    assert hero(page, "spend").startswith("Spend ≥ $3.00")
    assert "1 with usage for some calls only" in spend and "1 with outputs longer" in spend
    # Understated outputs do not affect what was paid again for a prompt.
    assert tile(page, "avoidable").startswith("Avoidable rewrites $0.20")
    assert "output ≥ $0.50" in tile(page, "avoidable")
    assert hero(page, "avoidable").startswith("Avoidable spend ≥ $0.20"), "2 are not assessed yet"
    Session.objects.filter(pk=week[0].pk).update(usage_calls=3, version=2)
    page = page_of(client, "/dashboard/")
    assert tile(page, "avoidable").startswith("Avoidable rewrites ≥ $0.20")
    assert hero(page, "avoidable").startswith("Avoidable spend ≥ $0.20")
    numbers = client.get("/api/v1/dashboard").json()["tiles"][0]["numbers"]
    assert [one["at_least"] for one in numbers] == [True, True]


def test_the_most_expensive_day_and_what_changed_are_said(client: Client, week: list[Session]):
    answers = panel(page_of(client, "/dashboard/"))
    assert answers.startswith(
        "What changed since the week before by when sessions ran Number of sessions rose from 1"
    )
    assert "Spend rose from $1.00 to $3.00 (+200 %)." in answers
    assert "from 0 % of 10 prompt tokens to 45.0 % of 2.0k prompt tokens (+45 " in answers
    made("cheap", 2.0, cost_microusd=1_000_000, agent="scout", model="m")
    page = page_of(client, "/dashboard/")
    answers = panel(page)
    assert (
        "cost $3.00, 75.0 % of the range. Its 3 sessions One session made 83.3 % of it." in answers
    )
    assert "The most expensive: <b>dear</b>" in html.unescape(answers)
    assert "Spend rose from $1.00 to $4.00 (+300 %), mostly agent scout." in answers
    found = re.search(r'agent scout\.[^<]*<a href="([^"]+)"', page.html)
    assert found is not None
    assert '<span class="count">1</span>' in page_of(client, html.unescape(found[1])).html
    answers = panel(page_of(client, "/dashboard/?range=30d"))
    assert "nothing before to compare with" in answers, "and a range that has two periods"
    halves = re.search(
        r'href="(\?from=[^"]+)">Compare the later half',
        page_of(client, "/dashboard/?range=30d").markup,
    )
    assert halves is not None
    compared = panel(page_of(client, "/dashboard/" + html.unescape(halves[1])))
    assert "What changed since the period before" in compared and "Number of sessions" in compared
    answers = panel(page_of(client, "/dashboard/?range=all"))
    assert "Sessions that ended on " in answers, "a session counts on the day of its last step"
    assert "Most expensive day" in answers and "The first session is from" in answers


def test_sessions_outside_the_range_are_shown_beside_it(client: Client, week: list[Session]):
    page = page_of(client, "/dashboard/")
    assert page.links["1 older session: show all"] == "?range=all"
    assert "show all" not in page_of(client, "/dashboard/?range=all").text


def test_no_ledger_and_no_failure_have_reasons(client: Client, week: list[Session]):
    Session.objects.filter(pk=week[1].pk).update(compaction_count=2)
    Session.objects.filter(pk=week[0].pk).update(source="openai-messages")
    run = Run.objects.create(session=week[2], origin="recorded")
    for number, score in enumerate((None, 500)):
        revision = Revision.objects.create(run=run, number=number, step=number + 1)
        FactLedger.objects.create(revision=revision, score=score, kept=1)
    Session.objects.filter(pk=week[2].pk).update(compaction_count=2)
    page = page_of(client, "/dashboard/")
    ledger = tile(page, "ledger")
    assert "2 of 4 compactions have a fact ledger, 1 of them without a score" in ledger
    assert "; the other 2 left no readable summary or are not assessed yet" in ledger
    assert "1 of 3 ; 1 without a compaction; 1 whose compactions left no" in ledger
    assert "1 without a compaction; 2 whose compactions no rule selected" in tile(page, "reviews")
    assert "1 in a format that does not record failures; 2 not assessed yet" in tile(
        page, "failures"
    )


def test_every_figure_is_a_row_and_leads_to_its_sessions(client: Client, week: list[Session]):
    page = page_of(client, "/dashboard/")
    assert page.html.count('<tr aria-labelledby="tile-') == len(TILES)
    assert {tile.name for tile in TILES if tile.headed} == {"recall", "window", "steps"}
    assert "Drift" not in page.text
    row = tile(page, "avoidable")
    assert "unexplained $0.15 uncached $1.00 cache write $0.70" in row
    spend = re.search(r'id="counted-spend" href="([^"]+)"', page.markup)
    assert spend is not None
    listed = page_of(client, spend[1].replace("&amp;", "&"))
    assert "counted in Spend" in listed.text
    assert '<span class="count">2</span>' in listed.html
    # Searching keeps the filters of the link.
    assert 'name="counted" value="spend"' in listed.html


def test_charts_are_tables_until_the_island_comes(client: Client, week: list[Session]):
    page = page_of(client, "/dashboard/")
    props = re.findall(r'<script id="chart-(\w+)-props" type="application/json">(.*?)</script>',
                       page.html)  # fmt: skip
    assert [name for name, _ in props] == ["spend", "cache", "peaks", "compactions", "kept"]
    spend = json.loads(props[0][1])
    assert [round(sum(v or 0 for v in one["values"])) for one in spend["series"]] == [
        500_000, 300_000, 1_350_000, 150_000, 200_000, 500_000,
    ]  # fmt: skip
    assert spend["stack"] is True
    assert len(spend["x"]["values"]) == 7
    assert json.loads(props[2][1])["series"][0]["values"] == [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    assert page.html.count('<ctx-island data-name="chart"') == 5


def test_a_change_of_policy_is_marked_on_every_axis_of_time(client: Client, week: list[Session]):
    rollout = str(uuid4())
    audit.note(local_team(), audit.COMMAND, "rollout.widened", "careful@2", share=50,
               rollout=rollout)  # fmt: skip
    page = page_of(client, "/dashboard/")
    props = re.findall(r'<script id="chart-\w+-props" type="application/json">(.*?)</script>',
                       page.html)  # fmt: skip
    marked = [json.loads(one).get("marks") for one in props]
    assert [len(marks or ()) for marks in marked] == [1, 1, 0, 1, 1]
    assert marked[0][0]["label"] == "careful@2 widened to 50 %"
    assert marked[0][0]["url"] == f"/rollouts/{rollout}/"
    answer = client.get("/api/v1/dashboard").json()["marks"]
    assert [(one["action"], one["rollout"]) for one in answer] == [("rollout.widened", rollout)]


def test_the_ones_near_their_limit(client: Client, week: list[Session]):
    page = page_of(client, "/dashboard/")
    assert page.links["<b>dear</b>"] == f"/sessions/{week[0].pk}/"


def test_a_range_without_sessions_says_when_the_last_one_was(client: Client):
    made("old", 90.0)
    page = page_of(client, "/dashboard/")
    assert "All dates are shown" in page.text
    assert "1 of 1" in tile(page, "steps")
    page = page_of(client, "/dashboard/?range=7d")
    assert "Nothing in this range" in page.text
    offered = page.links["Show the week that ends there"]
    assert "1 of 1" in tile(page_of(client, f"/dashboard/{offered}"), "steps")
    assert "1 of 1" in tile(page_of(client, "/dashboard/?range=all"), "steps")


@pytest.mark.parametrize("page", ["dashboard", "cache"])
def test_a_model_that_the_usual_range_lacks_is_one_click_away(client: Client, page: str):
    made("old", 60.0, model="m1", cost_microusd=5)
    made("new", model="m2", cost_microusd=900)
    shown = page_of(client, f"/{page}/?model=m1")
    assert "in this range (7 days)." in " ".join(shown.text.split())
    assert shown.links["Show all dates"] == "?range=all&model=m1"
    whole = page_of(client, f"/{page}/{shown.links['Show all dates']}")
    assert "1 session" in whole.text and "Show all dates" not in whole.links


def test_sessions_without_a_cost_do_not_hide_older_ones_that_have_one(client: Client):
    made("priced", 90.0, cost_microusd=2_500_000)
    made("just imported, without times", usage_calls=0)
    page = page_of(client, "/dashboard/")
    assert "older than the usual range (7 days)" in page.text
    assert "2 of 2" in tile(page, "steps")
    made("new", cost_microusd=1)
    assert "All dates are shown" not in page_of(client, "/dashboard/").text
    for number in range(30):
        made(f"imported {number}", 90.0, cost_microusd=1)
    page = page_of(client, "/dashboard/")
    assert "All dates are shown" in page.text, "one live session does not hide a history"
    page = page_of(client, "/dashboard/?range=7d")
    assert page.links["Look for fixes in 31 older sessions too"] == "?range=all"
    assert "No session in the week before to compare with." in panel(page)


@pytest.mark.parametrize(
    ("query", "field"),
    [("from=soon", "from"), ("from=2026-11-02&to=2026-11-01", "to")],
)
def test_invalid_days_are_reported_beside_their_field(
    client: Client, week: list[Session], query: str, field: str
):
    page = page_of(client, f"/dashboard/?{query}", 400)
    assert re.search(rf'name="{field}"[^>]*aria-invalid="true"', page.html)
    assert "The last 7 days are shown." in page.text
    problem = signed_in().get(f"/api/v1/dashboard?{query}")
    assert problem.status_code == 422
    assert problem.json()["errors"][0]["pointer"] == f"?{field}"


def test_the_api_tells_the_same_numbers(client: Client, week: list[Session]):
    answer = client.get("/api/v1/dashboard?range=7d").json()
    assert answer["sessions"] == 3
    tiles = {one["name"]: one for one in answer["tiles"]}
    assert list(tiles) == [tile.name for tile in TILES]
    spend = tiles["spend"]
    assert (spend["counted"], spend["left_out"]) == (
        2,
        [{"sessions": 1, "why": "without reported usage"}],
    )
    assert (spend["numbers"][0]["value"], spend["numbers"][0]["before"]) == (3_000_000, 1_000_000)
    assert spend["numbers"][0]["values"] == [None] * 6 + [3_000_000]
    assert len(answer["parts"]) == 7
    assert written(week[0].ended_at or 0)[:10] == answer["parts"][-1][:10]
    assert [one["external_id"] for one in answer["nearest_limit"]] == ["a"]
    assert answer["forecast_microusd"] >= 3_000_000
    assert answer["agreement"] == {"doubles": 0, "alpha": None}


def test_a_key_sees_its_own_team(week: list[Session]):
    _, token = create_key(other_team(), scopes=("read",))
    answer = Client().get("/api/v1/dashboard", headers={"authorization": f"Bearer {token}"}).json()
    assert answer["sessions"] == 0
    assert {number["value"] for one in answer["tiles"] for number in one["numbers"]} == {None}


def test_the_page_asks_as_many_questions_for_many_sessions(client: Client, week: list[Session]):
    asked = []
    for many in (1, 30):
        for i in range(many):
            made(f"s{many}.{i}", break_count=1, window=10, peak_tokens=9)
        page_of(client, "/dashboard/")  # adds up the days once
        with CaptureQueriesContext(connection) as queries:
            page_of(client, "/dashboard/")
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_an_open_page_follows_an_assessment() -> None:
    one = made("a")
    before = list_version(one.team_id)
    Assessment.objects.create(session=one, steps=3)
    assert list_version(one.team_id) != before
