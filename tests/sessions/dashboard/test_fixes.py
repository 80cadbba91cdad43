"""What to do and what waits on the dashboard, and the dashboard of an agent, model or policy."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from compaction.cache.causes import AVOIDABLE
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import active_version, named_version
from sessions.models import (
    Approval,
    Assessment,
    BreakTotals,
    Budget,
    Job,
    ReviewItem,
    Revision,
    Run,
    Session,
    Simulation,
    Use,
)
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from sessions.views.dashboard.fixes import CAUSES, MOST
from tests.sessions.pages import Page, page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def client() -> Client:
    return signed_in()


def made(costs: dict[str, int | None], can: Any = AVOIDABLE, **columns: Any) -> Session:
    """A session of now with a cache break of each of these causes, and what each cost."""
    now = int(timezone.now().timestamp() * 1000)
    session = Session.objects.create(
        team=local_team(), external_id=str(uuid4()), ended_at=now,
        **{"step_count": 9, "usage_calls": 9, "cost_microusd": 5_000_000,
           "break_count": len(costs), **columns},
    )  # fmt: skip
    cards = [{"kind": kind, "step": 3, "title": kind, "tokens": 9, "cost_microusd": cost,
              "advice": ""} for kind, cost in costs.items()]  # fmt: skip
    figures = pack(msgspec.json.encode(Figures(causes=cards)))
    Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=figures)
    for kind, cost in costs.items():
        BreakTotals.objects.create(
            session=session, cause=kind, avoidable=kind in can, breaks=1, tokens=9,
            cost_microusd=cost,
        )  # fmt: skip
    return session


def rows(page: Page) -> list[str]:
    """The texts of what is to do."""
    found = re.search(r'<ol class="fixes">.*?</ol>', page.html, re.S)
    items = re.findall(r"<li>.*?</li>", found[0], re.S) if found else []
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in items]


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
        "sessions. Net of the higher price of writing a 1-hour cache. Sessions without a policy: "
        "set it in the agent. $1.80 Change TTL",
        "Keep the system prompt constant It changed, so nothing after it was read: 1 cache break "
        "in 1 session. $0.90 at most Show breaks",
    ]
    assert "2 fixes in this range" in page.text
    assert page.links["Change TTL"] == "/policies/balanced/edit/?set=ttl&to=1h"
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=system#worst"


def test_no_more_than_five_and_a_lower_bound_where_a_session_has_no_cost(client: Client) -> None:
    made({kind: 100 + i for i, kind in enumerate(sorted(AVOIDABLE))})
    page = page_of(client, "/dashboard/")
    assert len(rows(page)) == MOST < len(AVOIDABLE)
    assert not any("≥" in row for row in rows(page))
    made(dict.fromkeys(AVOIDABLE), cost_microusd=None)
    assert all("≥" in row for row in rows(page_of(client, "/dashboard/")))


def test_sessions_without_a_policy_that_read_files_again(client: Client) -> None:
    one = made({})
    columns = {"needs": 10, "in_context": 6, "lost_facts": 4, "losses_microusd": 40_000}
    Assessment.objects.create(session=one, uncached_microusd=1, avoidable_microusd=0, **columns)
    page = page_of(client, "/dashboard/")
    assert rows(page) == [
        "Manage these sessions with a policy 4 lost facts were needed again in 1 session. "
        "Show them unknown savings are known after a simulation Simulate"
    ]
    assert page.links["Simulate"] == "/policies/"
    lost = page_of(client, page.links["Show them"])
    assert str(one) in lost.text and "Facts lost without a policy" in lost.text
    Assessment.objects.update(losses_microusd=0, lost_facts=0)
    Session.objects.update(tallied_version=-1)
    assert "Nothing to fix in this range" in page_of(client, "/dashboard/").text


def test_what_waits_is_named_on_top_and_nothing_is_said(client: Client) -> None:
    made({})
    assert "Nothing needs you now" in page_of(client, "/dashboard/").text
    for used, more in (
        (850, {"title": "near"}), (850, {"outcome": "succeeded"}), (700, {"title": "roomy"}),
        (None, {}),
    ):  # fmt: skip
        made({}, source="api", window=1000, peak_tokens=950, used_tokens=used, **more)
    made({}, window=1000, used_tokens=900)
    made({}, source="api", window=1000, used_tokens=900, demo=True)
    page = page_of(client, "/dashboard/")
    found = " ".join(unescape(page.text).split())
    assert "Needs you now “near” is near its limit Its next prompt fills 85 % of its room." in found
    assert page.links["Open"] == f"/sessions/{Session.objects.get(title='near').pk}/"
    Session.objects.filter(title="near").update(used_tokens=100, paused={"by": "a"})
    found = " ".join(unescape(page_of(client, "/dashboard/").text).split())
    assert "“near” is paused Its agent waits" in found
    assert "“roomy” is" not in found
    Job.objects.create(team=local_team(), kind="import", state="failed")
    assert "1 job failed In the last 24 hours." in page_of(client, "/dashboard/").text


def test_a_split_shows_only_its_sessions_and_stays_in_links(client: Client) -> None:
    made({"model": 300_000}, agent="scout", model="m1")
    made({"ttl": 500_000}, agent="scout", model="m2")
    made({"system": 900_000}, agent="writer", model="m1")
    page = page_of(client, "/dashboard/?range=30d&agent=scout&model=m1")
    assert '<span class="count">1</span>' in page.html
    assert [row.rpartition("$")[2] for row in rows(page)] == ["0.30 at most Show breaks"]
    assert page.links["7 days"] == "?range=7d&agent=scout&model=m1"
    assert "agent=scout&model=m1" in page.links["List them"]
    assert re.search(r'<option value="scout"\s+selected', page.html)
    assert re.search(r'name="range"\s+value="30d"', page.html)
    page = page_of(client, "/dashboard/?range=30d&agent=scout&model=m3")
    assert "No session of agent scout model m3 in this range." in " ".join(page.text.split())
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


def test_a_demo_approval_does_not_wait_beside_real_sessions(client: Client) -> None:
    actor = made({}, demo=True)
    use = Use.objects.create(budget=Budget.objects.create(team=local_team(), scope="task"), key="k")
    Approval.objects.create(use=use, session=actor, tokens=1, microusd=1)
    assert "1 call waits for approval" in page_of(client, "/dashboard/").text
    made({})
    assert "waits for approval" not in page_of(client, "/dashboard/").text


@pytest.mark.parametrize(("saved", "listed"), [(90_000, "$0.090"), (-1, "")])
def test_a_longer_ttl_is_a_fix_only_if_it_pays(client: Client, saved: int, listed: str) -> None:
    one = made({"ttl": 300_000}, AVOIDABLE if saved > 0 else ())
    Assessment.objects.create(session=one, hour_saved_microusd=saved)
    Assessment.objects.create(session=made({"ttl": 9}, ()), hour_saved_microusd=-5_000_000)
    assert [row.rpartition("agent. ")[2] for row in rows(page_of(client, "/dashboard/"))] == (
        [f"{listed} Change TTL"] if listed else []
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
        "$0.00010 at most Show breaks",
        "unknown edits also make prompts smaller; simulate in the lab Show breaks",
    ]


def test_the_best_simulated_policy_comes_with_its_saving(client: Client) -> None:
    one, version = made({"model": 300_000}), active_version(local_team())
    simulation = Simulation.objects.create(team=local_team(), draft=version, active=version)
    forgetful = named_version(local_team(), "sliding-window")
    simulation.versions.add(version, forgetful)
    for of, cost, share, again in (
        (None, 5_000_000, 0.9, None),
        (version, 3_500_000, 0.87, 100_000),
        (forgetful, 3_000_000, 0.84, 100_000),
    ):
        figures = {"cost_microusd": cost, "needs": 10, "in_context": share}
        figures["read_backs_microusd"] = again
        simulation.results.create(session=one, version=of, state="1", figures=figures)
    page = page_of(client, "/dashboard/")
    assert rows(page)[0] == (
        "Manage these sessions with a policy balanced@1 simulated over 1 session: −28 % cost "
        "including reading back (−30 % without), −3.0 points recall (87.0 % instead of 90.0 % of "
        "10 uses of facts, in all steps). The saving is what it would have cost less, whether or "
        "not anything went wrong. $1.40 Open comparison"
    )
    assert page.links["Open comparison"] == f"/lab/{simulation.pk}/?of=balanced%401"
    simulation.results.filter(version=version).update(
        figures={
            "cost_microusd": 4_000_000, "needs": 9, "in_context": 0.9,
            "read_backs_microusd": 1_500_000,
        }
    )  # fmt: skip
    assert "Manage these" not in page_of(client, "/dashboard/").text, (
        "one would cost more, one forgets"
    )
    Assessment.objects.create(session=one, lost_facts=4)
    Session.objects.update(tallied_version=-1)
    assert rows(page_of(client, "/dashboard/"))[1] == (
        "Manage these sessions with a policy balanced@1 simulated over 1 session: +10 % cost "
        "including reading back (−20 % without), same recall (90.0 % instead of 90.0 % of 10 uses "
        "of facts, in all steps). It costs more. 4 lost facts were used again in 1 session (no "
        "extra cost found). Show them −$0.50 Open comparison"
    )
    simulation.results.filter(version=version).delete()
    page = page_of(client, "/dashboard/")
    assert (
        "Manage these sessions with a policy 4 lost facts were used again in 1 session (no "
        "extra cost found). No simulated policy keeps what is needed as often; most does "
        "sliding-window@1 simulated over "
        "1 session: −38 % cost including reading back (−40 % without), −6.0 points recall (84.0 % "
        "instead of 90.0 % of 10 uses of facts, in all steps). Show them none keeps what is "
        "needed in context as often Open comparison"
    ) in rows(page)


def test_the_fix_and_the_lab_state_one_headline(client: Client) -> None:
    """Sessions without a price count for recall on both pages."""
    version = active_version(local_team())
    one, unpriced = made({"model": 1}), made({"model": 1}, cost_microusd=None)
    simulation = Simulation.objects.create(
        team=local_team(), draft=version, active=version, sessions=[str(one.pk), str(unpriced.pk)]
    )
    simulation.versions.add(version)
    for session, of, cost, share, again in (
        (one, None, 5_000_000, 0.9, None),
        (one, version, 3_500_000, 0.87, 150_000),
        (unpriced, None, None, 1.0, None),
        (unpriced, version, None, 0.99, None),
    ):
        figures = {"cost_microusd": cost, "needs": 10, "in_context": share, "peak_tokens": 9}
        figures |= {"window": None, "read_backs_microusd": again, "tokens_sent": 9}
        if of is None:
            del figures["read_backs_microusd"]
        simulation.results.create(session=session, version=of, state="1", figures=figures)
    headline = "−27 % cost including reading back (−30 % without), −2.0 points recall"
    row = next(one for one in rows(page_of(client, "/dashboard/")) if "Manage these" in one)
    assert f"over 2 sessions (1 with a price): {headline} (93.0 % instead of 95.0 % of 20" in row
    assert "$1.35" in row
    body = client.get(f"/api/v1/simulations/{simulation.pk}?of=balanced@1").json()
    assert body["verdict"]["sentence"] == f"Against the recording: better: {headline}."
    assert "$3.65 instead of $5.00 over 2 sessions (1 with a price)" in body["verdict"]["detail"]


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


def test_what_is_being_assessed_is_not_called_clear(client: Client) -> None:
    one = made({})
    job = Job.objects.create(team=local_team(), kind="assess")
    run = Run.objects.get(session=one)
    revision = Revision.objects.create(run=run, number=3, step=2)
    page = page_of(client, "/dashboard/")
    assert "Assessing 1 session… Fixes, recall and reviews follow." in page.text
    assert "Known when 1 session of this range is assessed." in page.text
    assert (
        "Nothing needs you now" not in page.text and 'hx-trigger="moved, every 4s"' in page.markup
    )
    job.delete()
    page = page_of(client, "/dashboard/")
    assert "Nothing needs you now" in page.text and "Nothing to fix in this range" in page.text
    ReviewItem.objects.create(team=local_team(), revision=revision, wanted=1, reason="hand")
    page = page_of(client, "/dashboard/")
    assert "1 compaction waits for review" in page.text
    assert page.links[f"{one}, step 2"] == f"/sessions/{one.pk}/revisions/recorded/3/"
