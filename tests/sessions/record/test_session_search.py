"""Searching, narrowing and paging the session list."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.live.requests.on_request import request_compaction
from sessions.actions.record.append import link_parents
from sessions.models import Run, Session
from sessions.models.dashboard.matching import matching
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.live.managed.test_managed_changes import do
from tests.sessions.made import reading, result, session, user
from tests.sessions.pages import page_of
from tests.sessions.record.listed import client, many, named, stored

__all__ = ["client"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_nothing_matches_is_not_nothing_yet(client: Client):
    named("a")
    page = page_of(client, "/sessions/?q=nowhere&flag=errors")
    assert "Nothing matches" in page.text
    assert page.links["Clear all"] == "/sessions/"
    assert page.links["Search in all text"] == "/search/?q=nowhere"
    assert page.links["Without “nowhere”"] == page.links["text “nowhere” ×"] == "?flag=errors"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("agent=tester", {"old", "new", "plain"}),
        ("agent=missing", set()),
        ("model=claude-x&flag=compacted", {"old"}),
        ("flag=breaks", {"new"}),
        ("flag=breaks&flag=compacted", set()),
        ("flag=near-limit", {"new"}),
        ("flag=errors", {"plain"}),
        ("flag=nonsense", {"old", "new", "plain"}),
        ("q=SAY+OLD", {"old"}),
        ("q=plai", {"plain"}),
        ("source=test&q=yes", {"old", "new", "plain"}),
        ("parent=nonsense", {"old", "new", "plain"}),
    ],
)
def test_the_address_narrows_the_list(client: Client, query: str, found: set[str]):
    named("old", compaction_count=1, window=1000, peak_tokens=799)
    named("new", break_count=2, window=1000, peak_tokens=800)
    named("plain", error_count=1)
    page = page_of(client, f"/sessions/?{query}")
    shown = {name for name in ("old", "new", "plain") if f"say {name}" in page.links}
    assert shown == found


def test_what_we_compacted_ourselves_counts_as_compacted(client: Client):
    running = grown(5)
    assert do(request_compaction(running)) is not None
    named("plain")
    page = page_of(client, "/sessions/?flag=compacted")
    revisions = running.runs.get(origin=Run.Origin.MANAGED).revisions.all()
    made = [one for one in revisions if one.edits.filter(strategy="compact").exists()]
    assert f"◆{len(made)}{len(made)} compactions: a summary" in page.text
    assert "say plain" not in page.links
    assert f"/sessions/{running.pk}/" in page.links.values()


def test_a_compaction_of_ours_is_found_before_and_after_its_day_is_tallied():
    running = grown(5)
    named("plain")
    assert do(request_compaction(running)) is not None
    for tallied in (False, True):
        found = matching(running.team, flags=("compacted",))
        assert [(one.pk, one.tallied_compacted) for one in found] == [(running.pk, tallied)]
        keep_totals(running.team)


def test_found_text_leads_to_the_step_where_it_stands(client: Client):
    made = reading(3)
    made.records.append(result("t3", "the port is 8126"))
    found = stored(made)
    page = page_of(client, "/sessions/?q=PORT+IS")
    assert f'href="/sessions/{found.pk}/steps/3/?m=8"' in page.html
    assert "the port is 8126" in page.text


def test_sub_agents_are_counted_with_their_parent_until_something_is_looked_for(client: Client):
    parent = named("parent")
    child = session(user("say child"), external_id="child")
    child.parent = "parent"
    stored(child)
    lost = session(user("say lost"), external_id="lost")
    lost.parent = "gone"
    stored(lost)
    link_parents(local_team())
    page = page_of(client, "/sessions/")
    assert "say child" not in page.links
    assert "sub-agent, parent not here" in page.text
    assert f'href="?parent={parent.pk}"' in page.html
    Session.objects.filter(pk=parent.pk).update(agent="chief", version=9)
    Session.objects.filter(external_id="child").update(agent="scout", version=9)
    choices = page_of(client, "/sessions/").text
    assert "chief (1)" in choices
    assert "scout (1, 1 of them sub-agents or warm-ups)" in choices
    below = page_of(client, f"/sessions/?parent={parent.pk}")
    assert "say child" in below.links
    assert "say parent" in below.text, "the chip names whose sub-agents they are"
    assert "say child" in page_of(client, "/sessions/?q=child").links


def test_warm_ups_are_out_of_the_way_and_can_be_found(client: Client):
    named("work")
    named("Warmup", meta={"warmup": True})
    assert "Warmup" not in page_of(client, "/sessions/").text
    found = page_of(client, "/sessions/?flag=warm-ups").text
    assert "Warmup" in found


@pytest.mark.parametrize("sort", ["newest", "peak", "cost", "steps"])
def test_pages_show_every_session_once_and_lead_back(client: Client, sort: str):
    many(120)
    address, pages = f"/sessions/?sort={sort}", []
    while address:
        page = page_of(client, address)
        pages.append([name for name in page.links if name.startswith("n")])
        address = f"/sessions/{page.links['Older ›']}" if "Older ›" in page.links else ""
    assert [len(names) for names in pages] == [40, 40, 40]
    assert len({name for names in pages for name in names}) == 120
    back = page_of(client, f"/sessions/{page.links['‹ Newer']}")
    assert [name for name in back.links if name.startswith("n")] == pages[1]
    first = page_of(client, f"/sessions/{back.links['‹ Newer']}")
    assert [name for name in first.links if name.startswith("n")] == pages[0]
    assert "‹ Newer" not in first.links


def test_the_order_is_the_one_asked_for(client: Client):
    named("cheap", cost_microusd=1, ended_at=3)
    named("dear", cost_microusd=9, ended_at=1)
    named("free", cost_microusd=None, ended_at=2)

    def order(sort: str) -> list[str]:
        page = page_of(client, f"/sessions/?sort={sort}")
        return [name[4:] for name in page.links if name.startswith("say ")]

    assert order("cost") == ["dear", "cheap", "free"]
    assert order("newest") == ["cheap", "free", "dear"]


@pytest.mark.parametrize(
    "cursor",
    ["x", "o~1", "o~x~y", "o~9~0", "n~99999999999999999999~" + "0" * 32,
     "o~2026-01-01T00:00:00+00:00~" + "0" * 32, "o~2026-01-01T00:00:00~" + "0" * 32, "\x00~~"],
)  # fmt: skip
def test_a_broken_cursor_begins_at_the_start(client: Client, cursor: str):
    named("a")
    response = client.get("/sessions/", {"cursor": cursor})
    assert response.status_code == 200
    assert "say a" in response.content.decode()


@pytest.mark.parametrize("text", ["\x00", "<script>alert(1)</script>", "%", "'", "x" * 5000, "‮"])
def test_hostile_searches_and_titles_stay_text(client: Client, text: str):
    made = session(user("hello"), external_id="evil")
    made.title = f"<img src=x onerror=alert(1)>{text}".replace("\x00", "")
    stored(made)
    response = client.get("/sessions/", {"q": text, "agent": text, "sort": text})
    assert response.status_code == 200
    assert b"<img src=x" not in response.content
    assert b"<script>alert" not in response.content
    page_of(client, "/sessions/")


def test_more_matches_than_are_counted_are_not_counted(client: Client, monkeypatch):
    monkeypatch.setattr("sessions.views.record.sessions.COUNTED_UP_TO", 3)
    many(5)
    assert "Sessions 5" in page_of(client, "/sessions/").text
    assert "Sessions 3+" in page_of(client, "/sessions/?q=n").text
    assert "Sessions 1" in page_of(client, "/sessions/?q=n4").text
