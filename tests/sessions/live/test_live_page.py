"""The live page as rendered: running sessions, and who may create keys."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from compaction.budget.growth import LimitForecast
from sessions.actions.accounts.keys import check_key, create_key
from sessions.actions.accounts.teams import local_team, local_user
from sessions.actions.live.forecasts import IDLE, LiveForecast
from sessions.actions.policies.policies import preset_version, version_of
from sessions.models import Assessment, Key, Membership, Session, Team
from sessions.models.record.sessions import QUIET_AFTER
from sessions.views.live.live import GAUGE, SOON, LiveRow, gauge, limits
from tests.sessions.pages import Page, other_team, page_of, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return signed_in()


def session(name: str, team: Team | None = None, **columns: Any) -> Session:
    columns = {"source": "api", "title": name, "window": 100_000, "used_tokens": 1000} | columns
    return Session.objects.create(team=team or local_team(), external_id=name, **columns)


def test_only_what_runs_is_on_the_page_and_the_fullest_is_first(client: Client):
    session("a little", used_tokens=10_000)
    session("nearly full", used_tokens=90_000)
    session("over", outcome="succeeded")
    session("imported", source="claude-code")
    session("foreign", team=other_team())
    quiet = session("quiet")
    Session.objects.filter(pk=quiet.pk).update(changed=timezone.now() - 2 * QUIET_AFTER)
    silent = session("stopped?", used_tokens=95_000)
    Session.objects.filter(pk=silent.pk).update(changed=timezone.now() - 5 * IDLE)
    page = page_of(client, "/live/")
    listed = [name for name, url in page.links.items() if url.count("/") == 3]
    assert listed[-3:] == ["nearly full", "a little", "stopped?"]
    assert page.text.count("no sign for") == 1 and "no sign for 10 m" in page.text
    assert not {"over", "imported", "foreign", "quiet"} & page.links.keys()
    assert "wait 750 ms" in page.text
    assert page.title == "3 running · Live · ContextLab"
    assert [row.live for row in (session("new"), Session.objects.get(pk=quiet.pk))] == [True, False]


def test_a_corrected_count_is_marked_as_corrected(client: Client):
    session("as counted", used_tokens=10_000, counted_tokens=10_000)
    assert b"counted by us" in client.get("/live/").content
    session("corrected", used_tokens=11_200, counted_tokens=10_000)
    assert b"we count 10,000, corrected by reported usage" in client.get("/live/").content


def test_an_unknown_prompt_is_unknown_and_the_share_is_that_of_the_api(client: Client):
    session("no count yet", used_tokens=None, step_count=11)
    row = " ".join(page_of(client, "/live/").text.split()).partition("no count yet")[2]
    assert "unknown 11" in row
    assert "0 %" not in row
    managed = session("managed", used_tokens=42_000)
    managed.policy_version = preset_version(local_team(), "offload-first")
    managed.save()
    share = client.get(f"/api/v1/sessions/{managed.pk}").json()["budget"]["share"]
    assert share > 0.42
    assert f"{100 * share:.0f} %" in page_of(client, "/live/").text


def test_without_agents_it_says_how_to_send_one(client: Client):
    page = page_of(client, "/live/")
    assert page.links["How to send one"] == "/start/"


def test_a_gauge_has_its_marks_where_the_policy_acts():
    managed = session("managed", used_tokens=50_000)
    managed.policy_version = preset_version(local_team(), "offload-first")
    shown, result = gauge(managed), limits(managed)
    assert shown.used == GAUGE / 2
    assert shown.trigger == round(GAUGE * result["trigger"] / 100_000)
    assert shown.reserve == GAUGE - round(GAUGE * result["room"] / 100_000) > 0
    plain = gauge(session("plain", used_tokens=150_000))
    assert (plain.used, plain.trigger, plain.standing.state) == (GAUGE, None, "over")


@pytest.mark.parametrize(
    ("used", "at", "steps", "advice", "why"),
    [
        (1_000, "policy", None, "go on", ""),
        (1_000, "policy", SOON + 1, "go on", "Compaction in about 6 steps."),
        (1_000, "policy", 2, "go on, then compacts", "Compaction in about 2 steps. Note what"),
        (1_000, "window", 1, "finish or compact", "The context is full in about 1 step. No policy"),
        (90_000, "window", 1, "wait 750 ms", "Advised between calls"),
    ],
)
def test_advice_follows_the_forecast(
    used: int, at: Any, steps: int | None, advice: str, why: str
) -> None:
    one = session("runs", used_tokens=used)
    coming = None if steps is None else LimitForecast(steps, 900, 90_000, 5)
    row = LiveRow(one, gauge(one), None, LiveForecast(at, coming, None))
    assert row.advice.text == advice
    assert row.advice.why.startswith(why)


def test_the_legend_names_the_marks_that_gauges_have(client: Client):
    session("plain")
    plain = page_of(client, "/live/").text
    assert "kept free for the output" in plain and "compaction" not in plain
    session("managed", policy_version=preset_version(local_team(), "offload-first"))
    assert "compaction" in page_of(client, "/live/").text


def test_a_session_that_lost_what_it_uses_says_so_here_and_on_the_dashboard(client: Client):
    def assessed(name: str, needs: int, kept: int, steps: int = 100) -> None:
        row = session(name, step_count=steps)
        Assessment.objects.create(
            session=row, needs=needs, in_context=kept, steps=100, missing=missing
        )

    missing = [{"fact": "/etc/p q.csv", "step": 61, "state": "retrievable", "uses": 2}]
    assessed("forgets", 100, 11, steps=140)
    assessed("few", 9, 0)
    assessed("good", 100, 75)
    said = (
        "Recall in context ≈11 % (estimated): of 100 uses of facts to step 100, 11 were of facts "
        "still there. Assessed again at step 200, or when it rests."
    )
    assert page_of(client, "/live/").text.count("Recall in context") == 1
    assert said in " ".join(page_of(client, "/live/").text.split())
    dashboard = " ".join(page_of(client, "/dashboard/").text.split())
    assert f"“forgets” uses what left its context {said}" in dashboard
    forgets = Session.objects.get(external_id="forgets")
    why = f"/sessions/{forgets.pk}/why/?text=%2Fetc%2Fp+q.csv&amp;step=61"
    for url in (
        "/live/",
        "/dashboard/",
        f"/sessions/{forgets.pk}/",
        f"/sessions/{forgets.pk}/forecast/",
    ):
        shown = " ".join(client.get(url).content.decode().split())
        assert said in shown and f'href="{why}"' in shown, url
        assert "retrievable at step 61, used 2 times without" in shown, url
    Session.objects.filter(pk=forgets.pk).update(step_count=100)
    assert "Assessed again" not in page_of(client, "/live/").text


def test_the_cost_of_a_running_session_is_at_least_until_it_ends(client: Client):
    """Usage is counted a moment after a call is stored: the sign does not come and go with it."""
    row = session("runs", cost_microusd=58_000, step_count=2, usage_calls=2)
    for counted in (2, 1, 2):
        Session.objects.filter(pk=row.pk).update(usage_calls=counted)
        assert "≥ $0.058" in page_of(client, "/live/").text
    Session.objects.filter(pk=row.pk).update(outcome="succeeded")
    row.refresh_from_db()
    assert not row.cost_is_bound


def test_the_page_says_how_many_of_its_sessions_belong_to_the_demo(client: Client):
    session("mine")
    session("made up", demo=True)
    session("made up and over", demo=True, outcome="succeeded")
    page = page_of(client, "/live/")
    assert "1 demo session is left out." in page.text and "of the demo" not in page.text
    page = page_of(client, "/live/?demo=1")
    assert "1 demo session is shown beside yours." in page.text and "1 of the demo" in page.text


def test_a_policy_that_cannot_be_read_hides_no_session(client: Client):
    old = version_of(local_team(), "old", {"steps": [{"strategy": "gone"}]}, preset=False)
    session("under an old policy", policy_version=old)
    assert "under an old policy" in page_of(client, "/live/").links


def test_a_key_is_made_shown_once_and_revoked(client: Client):
    made = client.post("/settings/keys/", {"name": "ci <b>", "scope": "read"})
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    key = Key.objects.get()
    token = f"clk_{key.prefix}"
    page = Page(made.content.decode())
    assert page.text.count(token) == 3  # the token, its export, and the row
    assert (key.name, key.scopes) == ("ci <b>", ["read"])
    again = page_of(client, "/settings/keys/")
    assert again.text.count(token) == 1
    assert "ci <b>" in again.text
    client.post(f"/settings/keys/{key.prefix}/revoke/")
    assert "Ended 1" in page_of(client, "/settings/keys/").text


def test_a_key_made_without_leaving_the_page_works(client: Client):
    answer = client.post(
        "/settings/keys/", {"name": "first"}, headers={"accept": "application/json"}
    )
    assert answer.status_code == 201
    found = check_key(answer.json()["token"])
    assert found is not None
    assert found.scopes == ["read", "write"]


def test_keys_belong_to_a_team_and_viewers_make_none(client: Client):
    foreign, token = create_key(other_team())
    assert client.post(f"/settings/keys/{foreign.prefix}/revoke/").status_code == 404
    assert check_key(token) is not None
    assert foreign.prefix not in page_of(client, "/settings/keys/").text
    Membership.objects.filter(user=local_user()).update(role=Membership.Role.VIEWER)
    own, _ = create_key(local_team())
    assert client.post("/settings/keys/", {"name": "no"}).status_code == 403
    assert client.post(f"/settings/keys/{own.prefix}/revoke/").status_code == 403
    assert not page_of(client, "/settings/keys/").forms.keys() - {"/logout/"}
    assert "ask an owner" in page_of(client, "/start/").text


def test_the_first_page_waits_and_then_leads_to_the_agent(client: Client):
    assert "Waiting for the first message" in page_of(client, "/start/").text
    first = session("my first", message_count=1)
    assert page_of(client, "/start/").links["Watch “my first”"] == f"/sessions/{first.pk}/"


def test_other_teams_of_a_person_are_one_step_away(client: Client):
    team = other_team()
    Membership.objects.create(user=local_user(), team=team, role=Membership.Role.OWNER)
    session("elsewhere", team=team)
    address = page_of(client, "/live/").links["Other"]
    assert address == "/live/?team=other", "the same page, of the other team"
    client.get(address)
    assert "elsewhere" in page_of(client, "/live/").links
