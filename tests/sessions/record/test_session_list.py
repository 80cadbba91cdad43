"""The session list: its rows, and the start page."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from sessions.actions.assessments.assessments import ENGINE
from sessions.actions.assessments.session_verdicts import verdict_on_session
from sessions.api.replay.watching import LIST, look
from sessions.models import Assessment, Job, Membership
from tests.sessions.made import reading, session, user
from tests.sessions.pages import other_team, page_of, signed_in
from tests.sessions.record.listed import client, many, named, stored

__all__ = ["client"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.mark.parametrize("address", ["/", "/sessions/"])
def test_without_a_session_every_way_leads_to_the_first_run(client: Client, address: str):
    assert client.get(address).headers["Location"] == "/start/"
    named("a")
    response = client.get("/")
    assert response.headers["Location"] == "/dashboard/"


def test_the_first_run_waits_and_then_links_to_what_came(client: Client):
    waiting = page_of(client, "/start/")
    assert "Waiting for the first session" in waiting.text
    assert "contextlab import ~/.claude/projects" in waiting.text
    assert "wait-dot" in waiting.classes
    assert "/imports/?team=local" in waiting.forms
    came = named("a")
    page = page_of(client, "/start/")
    assert page.links["Open “say a”"] == f"/sessions/{came.pk}/"
    assert "wait-dot" not in page.classes


@pytest.mark.parametrize("proxy", [True, False])
def test_a_teams_server_offers_what_reaches_it(client: Client, settings, proxy: bool):
    settings.PUBLIC, settings.AGENT_PROXY = "CONTEXTLAB_ALLOWED_HOSTS names it", proxy
    settings.JOB_KINDS = {"demo": "x"}
    for address in ("/start/", "/imports/"):
        shown = page_of(client, address)
        assert "contextlab push --url http://testserver --key clk_…" in shown.text
        assert "pip install contextlab" in shown.text
        assert "contextlab import" not in shown.text and "contextlab demo" not in shown.text
        assert "/settings/keys/?team=local" in shown.forms, "the key is filled in"
    text = page_of(client, "/start/").text
    assert "contextlab wrap claude" not in text
    assert "contextlab wrap --server http://testserver claude" in text
    team, own = "http://testserver/proxy/clk_…", "contextlab proxy --server http://testserver"
    assert (team in text, own in text) == (proxy, not proxy)
    assert text.index("Create key") < text.index("contextlab push") < text.index("Load the demo")


def test_the_demo_is_offered_where_there_is_one_and_loads_once(client: Client, settings):
    settings.JOB_KINDS = {"import": "x"}
    assert "/start/demo/?team=local" not in page_of(client, "/start/").forms
    assert client.post("/start/demo/").status_code == 404
    settings.JOB_KINDS = {"demo": "x"}
    assert "/start/demo/?team=local" in page_of(client, "/start/").forms
    first = client.post("/start/demo/").headers["Location"]
    assert client.post("/start/demo/").headers["Location"] == first
    assert Job.objects.get().kind == "demo"


def test_a_row_shows_the_session_and_says_what_is_not_known(client: Client):
    found = stored(reading(3))
    page = page_of(client, "/sessions/")
    assert page.links["Please read the files."] == f"/sessions/{found.pk}/"
    assert "tester · claude-x · test" in page.text
    assert "unknown" in page.text, "no usage was reported, so the cost is not zero"
    assert "estimated" in page.classes, "the peak was counted by us"


def test_a_peak_that_is_only_bounded_is_not_also_about(client: Client):
    named("a", peak_tokens=50, peak_measured=False, window=200_000)
    page = page_of(client, "/sessions/")
    assert "< 1 %" in page.text and "estimated" not in page.classes


def test_a_reported_peak_is_shown_plain(client: Client):
    named("a", peak_tokens=50_000, peak_measured=True, window=200_000, cost_microusd=57_500,
          usage_calls=1)  # fmt: skip
    page = page_of(client, "/sessions/")
    assert "25 %" in page.text
    assert "$0.058" in page.text
    assert "estimated" not in page.classes


@pytest.mark.parametrize("columns", [{"usage_calls": 2}, {"cost_at_least": True}])
def test_a_cost_that_lacks_a_part_is_a_lower_bound_on_every_page(
    client: Client, columns: dict[str, object]
):
    found = stored(reading(3), **{"cost_microusd": 57_500, "usage_calls": 3} | columns)
    assert "≥ $0.058" in page_of(client, "/sessions/").text
    manifest = client.get(f"/api/v1/sessions/{found.pk}/manifest").json()
    assert manifest["session"]["cost_at_least"]
    Assessment.objects.create(
        session=found, uncached_microusd=1, avoidable_microusd=0, engine=ENGINE
    )
    found.outcome = "succeeded"
    verdict = verdict_on_session(found, managed=False)
    assert verdict is not None and "at least $0.058" in verdict.sentence
    call_command("show", stdout=(out := StringIO()))
    assert "≥ $0.058" in out.getvalue()


def test_long_ids_show_both_ends(client: Client):
    for end in ("first", "second"):
        stored(session(user("Go."), external_id=f"run-of-the-tides-{end}"), title="Tides")
    text = page_of(client, "/sessions/").text
    assert "run-of-t…es-first" in text and "run-of-t…s-second" in text


def test_nothing_of_another_team_is_shown(client: Client):
    mine = named("mine")
    stranger = signed_in(other_team())
    assert stranger.get("/sessions/").headers["Location"] == "/start/"
    assert str(mine.pk) not in page_of(stranger, "/start/").html


def test_a_full_page_asks_few_questions(client: Client, django_assert_max_num_queries):
    many(60)
    for index in range(5):
        named(f"talk {index}")
    page_of(client, "/sessions/")  # adds up the days once
    with django_assert_max_num_queries(16):
        page = page_of(client, "/sessions/?q=n")
    assert len([name for name in page.links if name.startswith(("n", "talk "))]) == 40


def test_the_page_is_at_the_version_that_the_socket_tells(client: Client):
    named("a", version=7)
    named("b")
    member = Membership.objects.get()
    answer = look([member.user_id], [], {LIST}).version(member.user_id, LIST)
    assert (
        f'data-topic="sessions" data-version="{answer}"'
        in client.get("/sessions/").content.decode()
    )


def test_the_demo_is_left_out_beside_real_sessions_unless_asked_for(client: Client):
    named("demo", ended_at=3_000, demo=True, agent="made-up")

    def listed(url: str) -> list[str]:
        return [name for name in page_of(client, url).links if name.startswith("say ")]

    alone = page_of(client, "/sessions/")
    assert listed("/sessions/") == ["say demo"]
    assert "All sessions here are made up." in alone.text
    named("older", ended_at=1_000, agent="bot")
    named("newer", ended_at=4_000, agent="other bot")
    page = page_of(client, "/sessions/")
    assert listed("/sessions/") == ["say newer", "say older"]
    assert "1 demo session is left out. Show" in page.text
    assert "made-up" not in page.html, "nor is it counted in a filter"
    asked = page_of(client, "/sessions/?demo=1")
    assert listed("/sessions/?demo=1") == ["say newer", "say demo", "say older"], "by their time"
    assert "made-up (1)" in asked.text
    assert "1 demo session is shown beside yours. Leave out" in asked.text
    assert listed("/sessions/?agent=made-up") == []
    assert listed("/sessions/?agent=made-up&demo=1") == ["say demo"]
