"""The session list: rows, search, pagination, and the start page."""

from __future__ import annotations

import pytest
from django.test import Client

from sessions.actions.accounts.teams import local_team
from sessions.actions.dashboard.day_totals import keep_totals
from sessions.actions.live.on_request import request_compaction
from sessions.actions.record.append import append, link_parents
from sessions.actions.record.measure import measure
from sessions.consumers import LIST, look
from sessions.importers import records
from sessions.models import Job, Membership, Run, Session
from sessions.models.dashboard.matching import matching
from sessions.views.web.sparklines import HEIGHT, bar, sparkline
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.live.managed.test_managed_changes import do
from tests.sessions.made import count, reading, result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def client() -> Client:
    return signed_in()


def stored(made: records.Session, **columns: object) -> Session:
    found = append(local_team(), made, count, source="test").session
    measure(found)
    Session.objects.filter(pk=found.pk).update(**columns)
    found.refresh_from_db()
    return found


def named(name: str, **columns: object) -> Session:
    """A session whose first words are its name."""
    return stored(session(user(f"say {name}"), says("c1", "yes"), external_id=name), **columns)


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


def test_a_reported_peak_is_shown_plain(client: Client):
    named("a", peak_tokens=50_000, peak_measured=True, window=200_000, cost_microusd=57_500,
          usage_calls=1)  # fmt: skip
    page = page_of(client, "/sessions/")
    assert "25 %" in page.text
    assert "$0.05750" in page.text
    assert "estimated" not in page.classes


@pytest.mark.parametrize("columns", [{"usage_calls": 2}, {"cost_at_least": True}])
def test_a_cost_that_lacks_a_part_is_a_lower_bound_on_every_page(
    client: Client, columns: dict[str, object]
):
    found = stored(reading(3), **{"cost_microusd": 57_500, "usage_calls": 3} | columns)
    assert "≥ $0.05750" in page_of(client, "/sessions/").text
    manifest = client.get(f"/api/v1/sessions/{found.pk}/manifest").json()
    assert manifest["session"]["cost_at_least"]


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


def test_nothing_matches_is_not_nothing_yet(client: Client):
    named("a")
    page = page_of(client, "/sessions/?q=nowhere&flag=errors")
    assert "Nothing matches" in page.text
    assert page.links["Clear all"] == "/sessions/"
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
    assert f"◆{len(made)} compactions" in page.text
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


def many(number: int) -> None:
    """Sessions with equal and unknown values, in which a cursor could get lost."""
    team = local_team()
    Session.objects.bulk_create(
        Session(
            team=team,
            external_id=f"n{index}",
            title=f"n{index}",
            ended_at=None if index % 3 == 0 else index // 4,
            cost_microusd=None if index % 2 else index % 5,
            window=None if index % 7 == 0 else 1000,
            peak_tokens=index % 10,
            step_count=index % 4,
        )
        for index in range(number)
    )


@pytest.mark.parametrize("sort", ["newest", "peak", "cost", "steps"])
def test_pages_show_every_session_once_and_lead_back(client: Client, sort: str):
    many(120)
    address, pages = f"/sessions/?sort={sort}", []
    while address:
        page = page_of(client, address)
        pages.append([name for name in page.links if name.startswith("n")])
        address = f"/sessions/{page.links['Older ›']}" if "Older ›" in page.links else ""
    assert [len(names) for names in pages] == [50, 50, 20]
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


def test_a_full_page_asks_few_questions(client: Client, django_assert_max_num_queries):
    many(60)
    for index in range(5):
        named(f"talk {index}")
    page_of(client, "/sessions/")  # adds up the days once
    with django_assert_max_num_queries(15):
        page = page_of(client, "/sessions/?q=n")
    assert len([name for name in page.links if name.startswith(("n", "talk "))]) == 50


def test_the_page_is_at_the_version_that_the_socket_tells(client: Client):
    named("a", version=7)
    named("b")
    member = Membership.objects.get()
    answer = look([member.user_id], [], {LIST}).version(member.user_id, LIST)
    assert (
        f'data-topic="sessions" data-version="{answer}"'
        in client.get("/sessions/").content.decode()
    )


def test_a_sparkline_is_one_silhouette_per_kind_over_the_hidden_ground():
    columns = [[0] * 8 + [10, 0], [0] * 8 + [30, 0], [0] * 8 + [30, 0]]
    line = sparkline(columns, hidden=10, window=40, steps=9)
    assert [kind for kind, _ in line.paths] == ["result", "hidden"]
    top = dict(line.paths)["result"]
    assert top == f"M0 {HEIGHT}V24h1V0h2V{HEIGHT}z", "half of the window, then all of it twice"
    assert line.window == 0
    assert "peak 40 of 40" in line.label


def test_a_flat_sparkline_is_drawn_larger_and_without_a_window_it_does_not_reach():
    line = sparkline([[0] * 8 + [10, 0]], hidden=0, window=1000, steps=1)
    assert line.paths == (("result", f"M0 {HEIGHT}V{HEIGHT // 2}h1V{HEIGHT}z"),)
    assert line.window is None
    assert sparkline([], 0, None, 0).paths == ()


def test_a_bar_is_laid_end_to_end():
    segments = bar([250, *[0] * 8, 500], hidden=250, top=2000)
    assert [(s.kind, s.x, s.width) for s in segments] == [
        ("hidden", 0, 125),
        ("tools", 125, 125),
        ("other", 250, 250),
    ]
