"""What to do and what waits on the dashboard, and the dashboard of an agent, model or policy."""

from __future__ import annotations

import re
from collections import Counter
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
from sessions.figures import day
from sessions.models import (
    Approval,
    Assessment,
    BreakTotals,
    Budget,
    FactLedger,
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
from sessions.models.web.sums import Sums
from sessions.views.dashboard.first_fix import first_line, weeks_in
from sessions.views.dashboard.fixes import CAUSES, OPEN, SIMULATE
from sessions.views.dashboard.ranking import MOST, Fix, ranked
from tests.sessions.pages import Page, page_of, signed_in
from tests.sessions.reviews.queued import rank_again

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
        "sessions. Net of the higher price of writing a 1-hour cache. Set it in the agent: "
        "ENABLE_PROMPT_CACHING_1H=1 for Claude Code, &quot;ttl&quot;: &quot;1h&quot; in "
        "cache_control for the API. $1.80 Show breaks",
        "Keep the system prompt constant It changed, so nothing after it was read: 1 cache break "
        "in 1 session. $0.90 at most Show breaks",
    ]
    assert "2 fixes in this range" in page.text
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=ttl#worst"
    Session.objects.filter(pk=one.pk).update(policy_version=active_version(local_team()))
    page = page_of(client, "/dashboard/")
    assert "Sessions without a policy: set it in the agent: ENABLE_PROMPT_CACHING_1H=1" in page.text
    assert page.links["Change TTL"] == "/policies/balanced/edit/?set=ttl&to=1h"
    assert page.links["Show breaks"] == "/cache/?range=7d&cause=system#worst"


def test_no_more_than_five_and_a_lower_bound_where_a_session_has_no_cost(client: Client) -> None:
    one = made({kind: 100 + i for i, kind in enumerate(sorted(AVOIDABLE))})
    page = page_of(client, "/dashboard/")
    assert len(rows(page)) == MOST < len(AVOIDABLE)
    assert not any("≥" in row for row in rows(page))
    made(dict.fromkeys(AVOIDABLE), cost_microusd=None)
    found = rows(page_of(client, "/dashboard/"))
    assert all("≥" in row or "unknown edits" in row for row in found)
    Assessment.objects.create(session=one, lost_facts=4)
    Session.objects.update(tallied_version=-1)
    found = rows(page_of(client, "/dashboard/"))
    assert len(found) == MOST and any("not simulated yet" in row for row in found), "not cut off"


def test_sessions_without_a_policy_that_read_files_again(client: Client) -> None:
    one = made({})
    columns = {"needs": 10, "in_context": 6, "lost_facts": 4, "losses_microusd": 40_000}
    Assessment.objects.create(session=one, uncached_microusd=1, avoidable_microusd=0, **columns)
    page = page_of(client, "/dashboard/")
    assert rows(page) == [
        "Manage these sessions with a policy In this range, 4 lost facts were needed again in 1 "
        "session. Show them not simulated yet savings are known after a simulation; not ranked "
        "Simulate"
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
    assert '<span class="count">1 session</span>' in page.html
    assert [row.rpartition("$")[2] for row in rows(page)] == ["0.30 at most Show breaks"]
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
    assert [row.rpartition("for the API. ")[2] for row in rows(page_of(client, "/dashboard/"))] == (
        [f"{listed} Show breaks"] if listed else []
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
    on = f"simulated on {day(simulation.created)}"
    page = page_of(client, "/dashboard/")
    assert rows(page)[1] == (
        f"Manage these sessions with a policy balanced@1 {on} over 1 session: −28 % cost "
        "including reading back (−30 % without), −3.0 points recall (87.0 % instead of 90.0 % of "
        "10 uses of facts, in all steps). It can exceed the avoidable spend: smaller prompts save "
        "on every call. $1.40 Open comparison"
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
        f"Manage these sessions with a policy balanced@1 {on} over 1 session: +10 % cost "
        "including reading back (−20 % without), same recall (90.0 % instead of 90.0 % of 10 uses "
        "of facts, in all steps). It costs more. In this range, 4 lost facts were used again in 1 "
        "session (no extra cost found). Show them −$0.50 Open comparison"
    )
    simulation.results.filter(version=version).delete()
    page = page_of(client, "/dashboard/")
    assert (
        "Manage these sessions with a policy In this range, 4 lost facts were used again in 1 "
        "session (no extra cost found). No simulated policy keeps what is needed as often; most "
        f"does sliding-window@1 {on} over "
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


def test_avoidable_spend_of_sessions_that_are_not_assessed_is_not_nothing(client: Client) -> None:
    def said() -> str:
        found = " ".join(page_of(client, "/dashboard/").text.split())
        return found.partition("Avoidable spend ")[2]

    one, other = made({}), made({})
    assert said().startswith("unknown No session in this range has been assessed yet.")
    columns = {"uncached_microusd": 1, "avoidable_microusd": 0}
    Assessment.objects.create(session=one, **columns)
    Session.objects.update(tallied_version=-1)
    assert said().startswith("unknown 1 of 2 sessions assessed so far")
    Assessment.objects.create(session=other, **columns)
    Session.objects.update(tallied_version=-1)
    assert said().startswith("$0 0 % of spend")


def test_what_is_being_assessed_is_not_called_clear(client: Client) -> None:
    one, other = made({}), made({})
    job = Job.objects.create(team=local_team(), kind="assess")
    run = Run.objects.get(session=one)
    revision = Revision.objects.create(run=run, number=3, step=2)
    page = page_of(client, "/dashboard/")
    assert "Assessing 2 sessions… Fixes, recall and reviews follow." in page.text
    assert "Known when 2 sessions of this range are assessed." in page.text
    assert (
        "Nothing needs you now" not in page.text and 'hx-trigger="moved, every 4s"' in page.markup
    )
    job.delete()
    page = page_of(client, "/dashboard/")
    assert "Nothing needs you now" in page.text and "Nothing to fix in this range" in page.text
    ReviewItem.objects.create(team=local_team(), revision=revision, wanted=1, reason="hand")
    page = page_of(client, "/dashboard/")
    assert "1 compaction waits for review" in page.text
    assert page.links[f"Step 2, {one}"] == f"/sessions/{one.pk}/revisions/recorded/3/"
    worse = Revision.objects.create(run=Run.objects.get(session=other), number=1, step=9)
    FactLedger.objects.create(revision=worse, missed=2)
    ReviewItem.objects.create(team=local_team(), revision=worse, wanted=1, reason="hand")
    rank_again(local_team())
    page = page_of(client, "/dashboard/")
    worst = f"Step 9, {other}"
    said = f"{worst} 2 lost facts were needed again Step 2, {one}"
    assert f"2 compactions wait for review The worst: {said}" in page.text
    assert page.links[worst] == f"/sessions/{other.pk}/revisions/recorded/1/"
    paid = {"microusd": 870_000, "at_least": False}
    FactLedger.objects.create(revision=revision, after=paid, missed=1)
    rank_again(local_team())
    first = f"Step 2, {one} ≈$0.87, 1 lost fact was needed again"
    page = page_of(client, "/dashboard/")
    assert f"The worst: {first} {worst}" in page.text, "what is known to cost comes first"


@pytest.mark.parametrize(
    ("microusd", "weeks", "spent", "said"),
    [
        (30_000_000, 3.0, None, "$30.00 of the $109.00 spent in 28 sessions with a known cost "
                                "($10.00 a week)"),
        (30_000_000, 0, None, "$30.00 of the $109.00 spent in 28 sessions with a known cost"),
        (2_000_000, 3.0, (5_000_000, 1), "$2.00 of the $5.00 spent in 1 session with a known "
                                         "cost"),
        (None, 3.0, None, ""),
        (-1, 3.0, None, ""),
    ],
)  # fmt: skip
def test_the_first_fix_is_said_in_dollars_of_those_spent(
    microusd: int | None, weeks: float, spent: tuple[int, int] | None, said: str
) -> None:
    fix = Fix("break", "Keep it", "", microusd, "estimated", "See which", "", at_most=True,
              sessions=2, spent=spent)  # fmt: skip
    whole = Sums(Counter(cost=109_000_000, priced=28, sessions=29))
    sentence = f"First: keep it. Saves at most {said}, estimated from the usage of 2 sessions."
    sentence += " “See which” lists these tools, and changes nothing."
    assert first_line([fix], whole, weeks) == (sentence if said else "")


@pytest.mark.parametrize(
    ("fix", "said"),
    [
        (Fix("loss", "Manage", "", None, "", SIMULATE, ""), "First: simulate policies on these "
         "sessions. What they save is unknown until then. “Simulate” leads to Policies, where you "
         "start the simulation; no session changes."),
        (Fix("break", "Use it", "", 5, "estimated", "Change TTL", "/p/edit/?set=ttl"),
         "“Change TTL” opens the policy editor with this value; sessions use it once you save it "
         "and roll it out."),
        (Fix("break", "Use it", "", 5, "estimated", "Change TTL", "/policies/balanced/"),
         "“Change TTL” opens the policy, and changes nothing."),
        (Fix("loss", "Manage", "", 5, "simulated", OPEN, "", sessions=3),
         "simulated on 3 sessions. “Open comparison” shows the simulation"),
    ],
    ids=["simulate", "edit", "read only", "compare"],
)  # fmt: skip
def test_the_first_fix_says_what_its_button_does(fix: Fix, said: str) -> None:
    assert said in first_line([fix], Sums(Counter(cost=10, priced=1)), 0)


@pytest.mark.parametrize(
    ("days", "weeks"),
    [([], 0), ([3], 0), ([1, 7, 13], 0), ([1, 7, 14], 2), ([1, 8, 14], 2), ([1, 9, 14], 0),
     ([28, 1, 9, 17, 22], 0), ([21, 1, 7, 14], 3)],
)  # fmt: skip
def test_a_week_is_said_of_sessions_of_two_weeks_without_a_week_between_them(
    days: list[int], weeks: float
) -> None:
    assert weeks_in(days) == weeks


def test_what_comes_first_loses_no_recall_if_that_saves_too() -> None:
    def fix(title: str, microusd: int | None, forgets: float = 0) -> Fix:
        return Fix("loss", title, "", microusd, "", "", "", forgets=forgets)

    most, less, little = fix("most", 9, 0.044), fix("less", 5, 0.01), fix("little", 2)
    unknown, none, dear = fix("unknown", None), fix("none", 0), fix("dear", -1)
    assert ranked([little, unknown, less, most]) == [little, most, less, unknown]
    assert ranked([dear, less, none, most]) == [most, less, none, dear], "none of these saves"
    assert ranked([most, *[less] * MOST, little])[0] == little, "it is not cut off"


def test_the_first_sentence_says_what_a_policy_forgets(client: Client) -> None:
    one, version = made({}), active_version(local_team())
    simulation = Simulation.objects.create(team=local_team(), draft=version, active=version)
    simulation.versions.add(version)

    def first(share: float) -> str:
        simulation.results.all().delete()
        for of, cost, kept in ((None, 5_000_000, 0.9), (version, 3_000_000, share)):
            figures = {"cost_microusd": cost, "needs": 10, "in_context": kept}
            figures["read_backs_microusd"] = 0 if of else None
            simulation.results.create(session=one, version=of, state="1", figures=figures)
        return page_of(client, "/dashboard/").text.partition("First")[2].partition(": ")[2]

    less = ", simulated on 1 session, and keeps 4.4 points less of what is needed later. “Open"
    assert first(0.856).startswith("manage these sessions with a policy. Saves $2.00 of")
    assert less in first(0.856)
    for same in (0.8996, 0.95):
        assert ", simulated on 1 session. “Open" in first(same), "what the lab calls the same"
    made({"system": 400_000})
    assert (said := first(0.856)).startswith("keep the system prompt constant. Saves at most $0.40")
    assert (
        "“Manage these sessions with a policy” below saves more, $2.00 as simulated, but keeps 4.4 "
        "points less of what is needed later." in said
    ), "why it is not first"
    assert first(0.9).startswith("manage these"), "else by dollars"
