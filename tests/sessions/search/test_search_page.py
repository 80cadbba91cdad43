"""The search page and the API: filters, pages, saved searches, and other teams."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.models import Assessment, FactLedger, Revision, SavedSearch, Session
from sessions.models.search import by_session, hidden, looked_up
from sessions.models.search import search as searching
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in
from tests.sessions.programs import Program, assert_problem
from tests.sessions.search.searched import forgetful, reindex, store

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_another_team_finds_nothing(program: Program, stranger: Program) -> None:
    stored = store(program.team)
    assert len(program.get("/search?q=8417")["hits"]) == 1
    assert stranger.get("/search?q=8417")["hits"] == []
    assert_problem(stranger.ask("GET", f"/sessions/{stored.pk}/search?q=8417"), 404)
    page = page_of(signed_in(other_team()), f"/search/?q=8417&session={stored.pk}")
    assert "Nothing matches" in page.text
    assert "a missing session" in page.text


@pytest.mark.parametrize("few", [-1, 200])
def test_filters_of_sessions_in_the_address(
    program: Program, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(looked_up, "FEW", few)
    stored = store(program.team)
    Session.objects.filter(pk=stored.pk).update(cost_microusd=2_000_000, ended_at=1_790_000_000_000)
    day = "2026-09-21"
    for query, many in {
        "agent=tester": 1,
        "agent=other": 0,
        "model=claude-x": 1,
        "model=x": 0,
        "cost=2": 1,
        "cost=2.01": 0,
        f"since={day}": 1,
        f"since={day}T23:59Z": 0,
        f"until={day}": 0,
        "tool=Read&kind=result": 0,
        "tool=Read&kind=file": 1,
        "error=true": 0,
    }.items():
        assert len(program.get(f"/search?q=8417&{query}")["hits"]) == many, query
    client = signed_in(program.team)
    for query, many in {f"from={day}": 1, f"to={day}": 1, "from=2026-09-22": 0, "range=today": 0,
                        "from=nonsense": 1, "cost=NaN": 1,
                        "cost=3": 0, "error=1": 0, "kind=nonsense": 1}.items():  # fmt: skip
        found = "<mark>" in page_of(client, f"/search/?q=8417&{query}").markup
        assert found == bool(many), query
    for wrong in ("since=soon", "cost=-1", "kind=nonsense", "limit=51", "after=x"):
        assert_problem(program.ask("GET", f"/search?q=x&{wrong}"), 422)


def test_pages_go_on_where_they_ended(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "STRIDES", (2, 4))
    monkeypatch.setattr(searching, "AT_ONCE", 3)
    texts = [user(f"needle number {n}", key=f"k{n}") for n in range(11)]
    append(program.team, session(*texts), count, source="test")
    append(program.team, session(user("a needle", key="o"), external_id="s2"), count, source="test")
    reindex(program.team)
    seen, after = [], ""
    for _ in range(9):
        page = program.get(f"/search?q=needle&limit=2{after}")
        seen += [(hit["session"]["external_id"], hit["message"]) for hit in page["hits"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == [("s2", 1), *(("s1", n) for n in range(11, 0, -1))]
    client = signed_in(program.team)
    shown = page_of(client, "/search/?q=needle")
    assert shown.markup.count("<mark>") == 1 + 5, "five of a session"
    assert "6 of about 12 hits in 2 sessions, newest session first." in shown.text
    assert "1 hit in 1 session, newest" in page_of(client, "/search/?q=needle+number+3").text
    monkeypatch.setattr(looked_up, "COUNTED", 3)
    assert "More than 3 hits" in page_of(client, "/search/?q=needle").text
    every = page_of(client, "/search/" + shown.links["All hits in this session"])
    assert every.markup.count("<mark>") == 11


def test_time_that_runs_out_is_said(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    store(program.team)
    monkeypatch.setattr(hidden, "DEADLINE", -1)
    answer = program.get("/search?q=port+drain")
    assert (answer["complete"], len(answer["hits"])) == (False, 1)
    rest = program.get(f"/search?q=port+drain&after={answer['next']}")
    assert (rest["hits"], rest["complete"], rest["next"]) == ([], True, None)


def test_the_page_goes_through_sessions_newest_first_and_counts_what_became_of_hits(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(program.team)
    for name, ended, demo, text in (
        ("old", 1_700_000_000_000, False, "the port is 8417"),
        ("apart", 1_710_000_000_000, False, "8417 port the"),
        ("demo", 1_900_000_000_000, True, "the port again"),
    ):
        made = session(user(text, key=name), external_id=name)
        pk = append(program.team, made, count, source="test").session.pk
        Session.objects.filter(pk=pk).update(ended_at=ended, demo=demo, title=name)
    Session.objects.filter(external_id="s1").update(ended_at=1_800_000_000_000, title="newest")
    reindex(program.team)
    client = signed_in(program.team)
    beside = page_of(client, "/search/?q=port").text
    assert "3 hits in 3 sessions" in beside and "1 demo session is left out" in beside
    examples = [page_of(client, f"/search/{asked}").text for asked in ("", "?demo=1")]
    assert ["the port that the demo loses" in one for one in examples] == [False, True]
    page = page_of(client, "/search/?q=port&demo=1")
    results = page.text.partition("last.")[2]
    titles = [one for one in results.split() if one in ("newest", "old", "apart", "demo")]
    assert titles == ["newest", "apart", "old", "demo", "demo"], "and the demo's is labelled"
    assert "4 hits in 4 sessions, newest session first, the demo's last." in page.text
    assert "Jan 15, 2027" in page.text and "Of 1 hit: 1 in lost text · 0 in context" in page.text
    lost = page_of(client, "/search/?q=port&state=lost")
    assert "1 lost hit in 1 session" in lost.text and "only lost text" in lost.text
    assert lost.markup.count("<mark>") == 1
    # Time runs out after each session: the rest comes on the next pages, and none is empty.
    monkeypatch.setattr(by_session, "AT_ONCE", 1)
    monkeypatch.setattr(hidden, "DEADLINE", -1)
    shown, asked = [], "?q=port&demo=1"
    while asked:
        page = page_of(client, f"/search/{asked}")
        shown.append(page.markup.count("<mark>"))
        asked = page.links.get("Continue in older ones ›", "")
    assert shown == [1, 1, 1, 1]
    rest = page_of(client, "/search/?q=%22the+port%22&demo=1")
    assert "No match so far" in rest.text and rest.links["Search the rest"].endswith("after=1")
    assert "Searched 1 of 3 sessions." in rest.text
    assert "No further match" in page_of(client, "/search/?q=port&demo=1&after=4").text


def test_lost_hits_are_counted_over_all_pages_and_the_api_finds_them(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("s1", "s2", "s3"):
        store(program.team, name)
    client = signed_in(program.team)
    usual = by_session.AT_ONCE
    monkeypatch.setattr(by_session, "HITS", 1)
    monkeypatch.setattr(by_session, "AT_ONCE", 1)
    first = page_of(client, "/search/?q=8417&state=lost")
    assert first.markup.count("<mark>") == 1 and "3 lost hits in 3 sessions" in first.text
    last = page_of(client, "/search/?q=8417&state=lost&after=2")
    assert last.markup.count("<mark>") == 1 and "3 lost hits in 3 sessions" in last.text
    monkeypatch.setattr(by_session, "COUNTING", -9)
    some = page_of(client, "/search/?q=8417&state=lost")
    assert "At least 1 lost hit in 1 session" in some.text
    monkeypatch.setattr(by_session, "AT_ONCE", usual)
    # The words of a path are named by the summary: not lost, and not only "0 in lost text".
    named = page_of(client, "/search/?q=%22deploy/checkout.env%22")
    assert "Of 2 hits: 0 in lost text · 1 in context · 1 named in a summary or stub" in named.text
    words, found = "q=deploy+checkout.env", []
    assert {one["state"] for one in program.get(f"/search?{words}")["hits"]} > {"named"}
    after = ""
    while True:
        answer = program.get(f"/search?{words}&state=named&limit=1{after}")
        found += answer["hits"]
        if answer["next"] is None:
            break
        after = f"&after={answer['next']}"
    assert [one["state"] for one in found] == ["named"] * 3
    assert program.get("/search?q=8417&state=retrievable")["hits"] == []
    assert_problem(program.ask("GET", "/search?q=8417&state=gone"), 422)


def test_before_a_query_the_page_offers_some() -> None:
    page = page_of(signed_in(), "/search/")
    assert "Examples" in page.text and page.links["failed tool calls"] == "?error=1"
    assert "Enter a word" not in page.text
    assert "Enter a word to search for" in page_of(signed_in(), "/search/?state=lost").text


def test_what_the_page_says_when_there_is_nothing(jobs_wait: None) -> None:
    client = signed_in()
    assert "Nothing to look up" in page_of(client, f"/search/?q={quote('->')}").text
    nothing = " ".join(page_of(client, "/search/?q=rds").text.split())
    assert "No block holds rds. Search finds whole words only" in nothing
    assert "Type the whole word" in nothing and "not the names of parameters" in nothing
    append(local_team(), session(*forgetful()), count, source="test")
    page = page_of(client, "/search/?q=8417")
    assert "1 session with new text is waiting to be indexed" in page.text
    assert "It has not read all sessions yet" in page.text
    assert "timed out" not in page.text
    page = page_of(client, "/search/?q=test+timeout&error=1")
    assert page.links["timed out"] == "?q=test+%22timed+out%22&error=1"
    assert "timed out" not in page_of(client, "/search/?q=timeouts&kind=user").text
    assert "Search for the lost value itself" in page_of(client, "/search/?q=x&state=lost").text


def test_saved_searches_belong_to_a_team() -> None:
    client = signed_in()
    saved = {"name": " lost  ports ", "query": "q=8417&kind=file&after=5&evil=1"}
    assert client.post("/search/saved/", saved).headers["Location"] == "/search/?q=8417&kind=file"
    client.post("/search/saved/", saved | {"query": "q=8418"})
    client.post("/search/saved/", saved | {"query": "kind=file"})
    client.post("/search/saved/", saved | {"name": " "})
    (row,) = SavedSearch.objects.all()
    assert (row.name, row.query, row.team) == ("lost ports", "q=8418", local_team())
    assert page_of(client, "/search/").links["lost ports"] == "/search/?q=8418"
    stranger = signed_in(other_team())
    assert "lost ports" not in page_of(stranger, "/search/").text
    assert stranger.post(f"/search/saved/{row.pk}/remove/").status_code == 404
    client.post(f"/search/saved/{row.pk}/remove/")
    assert not SavedSearch.objects.exists()


def test_failed_tool_calls_are_listed_without_a_word_and_open_at_the_step_shown() -> None:
    team = local_team()
    failing = session(
        user("Run it."), reads("c1", "t1", "a.py"), result("t1", "timed out", error=True),
        says("c2", "It failed."), external_id="s2",
    )  # fmt: skip
    stored = append(team, failing, count, source="test").session
    store(team)
    client = signed_in(team)
    url = page_of(client, "/search/").links["failed tool calls"]
    page = page_of(client, f"/search/{url}")
    assert "1 hit in 1 session" in page.text
    assert "Step 2" in page.text
    assert f'href="/sessions/{stored.pk}/steps/2/?m=' in page.markup
    assert "in context" in page.text
    stored.delete()
    assert "record no failed tool call" in page_of(client, f"/search/{url}").text


@pytest.mark.parametrize("asked", ["step 2", "what did it see at step 2 of the longest session?"])
def test_a_step_named_in_a_search_is_offered_in_the_longest_session(asked: str) -> None:
    team = local_team()
    records = [user("Go."), says("c1", "1"), user("On."), says("c2", "2"), says("c3", "3")]
    long = append(team, session(*records, external_id="long"), count, source="test").session
    append(team, session(*records[:4], external_id="mid"), count, source="test")
    append(team, session(*records[:2], external_id="short"), count, source="test")
    client = signed_in(team)
    page = page_of(client, f"/search/?q={quote(asked)}")
    steps = page.markup.partition("What the model saw at step 2")[2]
    assert f'href="/sessions/{long.pk}/steps/2/"' in steps.partition("</li>")[0]
    assert steps.count("/steps/2/") == 2
    assert "What the model saw" not in page_of(client, "/search/?q=step+99").text


def test_of_failed_results_those_with_the_word_in_an_error_line_come_first() -> None:
    team = local_team()
    append(team, session(
        user("Run it."),
        reads("c1", "t1", "a.py"),
        result("t1", "timeout = 30\n" + "x" * 400 + "\nboom", error=True),
        reads("c2", "t2", "b.py"),
        result("t2", "timeout = 30\n" + "y" * 400 + "\nError: timeout of b", error=True),
        says("c3", "Both failed."), external_id="s2",
    ), count, source="test")  # fmt: skip
    store(team)
    markup = page_of(signed_in(team), "/search/?q=timeout&error=1").markup
    hits = markup.partition('class="hits"')[2].split("</li>")
    assert "error-line" in hits[0] and "Error: <mark>timeout</mark> of b" in hits[0]
    assert "error-line" not in hits[1] and "<mark>timeout</mark> = 30" in hits[1]


def test_a_search_for_lost_text_says_how_far_it_got_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looked_up, "COUNTED", 3)
    monkeypatch.setattr(searching, "STRIDES", (4, 4))
    monkeypatch.setattr(searching, "AT_ONCE", 1)
    monkeypatch.setattr(hidden, "ENDING_DEADLINE", -1)
    team = local_team()
    later = [user(f"port {n}", key=f"later{n}") for n in range(6)]
    stored = append(team, session(*forgetful(), *later), count, source="test").session
    reindex(team)
    line = {"fact": "8417", "state": "lost", "needed": 4, "block": "3"}
    revision = Revision.objects.get(run__session=stored)
    FactLedger.objects.create(revision=revision, missed=1, facts=[line])
    Assessment.objects.create(session=stored, lost_facts=1)
    client, asked, shown = signed_in(team), "?q=port&state=lost", []
    while asked:
        page = page_of(client, f"/search/{asked}")
        facts, _, hits = page.text.partition("Searched ")
        assert "Lost facts that were needed again" in facts and "No match" not in facts
        shown.append((facts.rpartition("lost hit")[0][-2:], "No further match" in facts, hits[:12]))
        links = page.links
        asked = links.get("Search the rest", "") or links.get("Continue in older ones ›", "")
    # The four newest are in context and not read; then more of the session than it may show.
    assert shown == [
        ("", True, "4 of 7 hits."),
        ("1 ", False, "7 of 7 hits."),
        ("", True, "all 7 hits. "),
    ]


def test_a_word_of_its_line_finds_a_lost_fact_that_was_needed_again() -> None:
    team = local_team()
    stored = store(team)
    revision = Revision.objects.get(run__session=stored)
    line = {"fact": "8417", "state": "lost", "needed": 4, "block": "3"}
    FactLedger.objects.create(revision=revision, missed=1, facts=[line])
    Assessment.objects.create(session=stored, lost_facts=1)
    client = signed_in(team)
    page = page_of(client, "/search/?q=port")
    assert "PORT=8417" in page.text.partition("Lost facts that were needed again")[2]
    assert f"/sessions/{stored.pk}/why/?text=8417&amp;step=4" in page.markup
    assert "Lost facts that" not in page_of(client, "/search/?q=drain").text
    assert "Lost facts that" not in page_of(signed_in(other_team()), "/search/?q=port").text
