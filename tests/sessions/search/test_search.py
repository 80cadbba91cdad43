"""Search in the texts of all blocks: what is found, where it is at the end, what is forgotten."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.db import connection
from django.utils.html import escape
from hypothesis import given
from hypothesis import strategies as st

from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.record.append import append
from sessions.actions.search import indexing
from sessions.importers import records
from sessions.models import Job, Run, SavedSearch, Session, Team
from sessions.models.search import search as searching
from sessions.models.search import text_index
from sessions.models.search.search import Wanted, search
from sessions.models.search.search_words import SearchQuery, label, words_of
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import other_team, page_of, signed_in
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def _forgetful(external_id: str = "s1") -> list[records.Record]:
    """A port is read and compacted away; the summary keeps the name of the file."""
    return [
        user("Deploy checkout_api, please.", key=f"{external_id}k0"),
        reads("c1", "t1", "deploy/checkout.env", key="k1"),
        result("t1", 'URL="x"\nPORT=8417 <b>&\nDRAIN=25', key="k2"),
        says("c2", "Read.", key="k3"),
        user("Go on.", key="k4"),
        says("c3", "Going on.", key="k5"),
        records.Compaction("auto", key="compaction", tokens_before=999, tokens_after=99),
        records.Message(
            "user", [{"type": "text", "text": "deploy/checkout.env was read."}],
            key="s", kind="summary",
        ),
        user("And?", key="k6"),
        says("c4", "HttpServer2 failed: 找不到文件", key="k7"),
    ]  # fmt: skip


def _stored(team: Team | None = None, external_id: str = "s1") -> Session:
    """That session, with the index up to date."""
    team = team or local_team()
    made = append(team, session(*_forgetful(), external_id=external_id), count, source="test")
    _index(team)
    return made.session


def _index(team: Team) -> None:
    while indexing.index_some(team):
        pass


def _blocks(query: str, team: Team | None = None, **wanted: object) -> list[tuple[int, str]]:
    """Messages found, and where each is at the end."""
    rows = Session.objects.filter(team=team or local_team())
    rows = rows.filter(pk=wanted.pop("session")) if "session" in wanted else rows
    asked = Wanted(SearchQuery.of(query), **wanted)  # type: ignore[arg-type]
    found = search([team or local_team()], asked, rows)
    return [(hit.block.message.seq, hit.presence.state) for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("8417", [(3, "lost")]),
        ("port=8417", [(3, "lost")]),
        ('"PORT=8417 <b>"', [(3, "lost")]),
        ('"8417 <b>& drain"', [(3, "lost")]),
        ("PORT missing", []),
        ("port drain", [(3, "lost")]),
        ('"port drain"', []),
        ("deploy/checkout.env", [(7, "in_context"), (2, "named")]),
        ("checkout_api", [(1, "lost")]),
        ("checkout api", [(1, "lost")]),
        ("api_checkout", []),
        ("server", [(9, "in_context")]),
        ("HTTPSERVER2", [(9, "in_context")]),
        ("httpserver", []),
        ("找不到", [(9, "in_context")]),
        ("到不", []),
        ("(8417)", [(3, "lost")]),
        ('"=8417 <"', [(3, "lost")]),
        ("841", []),
        ("", []),
        ('"<&>"', []),
        ("AND OR NOT", []),
        ("words : port*", []),
    ],
)
def test_what_a_query_finds(query: str, found: list[tuple[int, str]]) -> None:
    _stored()
    assert _blocks(query) == found


def test_words_with_the_same_hash_are_different_words() -> None:
    """Both have the CRC-32 0x4ddb0c25."""
    append(local_team(), session(user("plumless", key="k")), count, source="test")
    _index(local_team())
    assert _blocks("buckeroo") == []
    assert _blocks("plumless") == [(1, "in_context")]


@pytest.mark.parametrize("frequent", [0, 1, 5_000])
def test_frequent_words_come_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, frequent: int
) -> None:
    monkeypatch.setattr(text_index, "FREQUENT", frequent)
    _stored()
    assert [seq for seq, _ in _blocks("deploy")] == [7, 2, 1]
    owners = [label("team", local_team().pk)]
    first, *rest = text_index.holding(["deploy"], owners, below=None, limit=9)
    assert text_index.holding(["deploy"], owners, below=None, limit=1) == [first]
    assert text_index.holding(["deploy"], owners, below=first, limit=9) == rest


def test_what_several_compactions_left() -> None:
    """Each summary stands in for the one before it, so what only the first kept is lost later."""
    made = [user("alpha beta gamma", key="k")]
    for number, kept in enumerate(("alpha beta", "alpha gamma"), 1):
        made += [
            says(f"c{number}", "Going on.", key=f"a{number}"),
            user("And?", key=f"u{number}"),
            says(f"d{number}", "Done.", key=f"b{number}"),
            records.Compaction("auto", key=f"x{number}", tokens_before=999, tokens_after=99),
            records.Message(
                "user", [{"type": "text", "text": kept}], key=f"s{number}", kind="summary"
            ),
        ]
    made += [user("Go on.", key="u3"), says("c3", "Fine.", key="a3")]
    stored = append(local_team(), session(*made), count, source="test").session
    _index(local_team())
    first, second = stored.runs.get().revisions.order_by("number").values_list("step", flat=True)
    program = Program(local_team())
    for word, state in {
        "alpha": ("named", first),
        "gamma": ("named", first),
        "beta": ("lost", second),
        '"beta gamma"': ("lost", first),
    }.items():
        hits = program.get(f"/search?q={quote(word)}")["hits"]
        ends = {hit["message"]: (hit["state"], hit["state_since"]) for hit in hits}
        assert ends[1] == state, word


def test_filters_of_blocks() -> None:
    made = _stored()
    failing = session(
        user("Try.", key="a"),
        reads("c1", "t1", "x", key="b"),
        result("t1", "no port here", error=True, key="c"),
        external_id="s2",
    )
    append(local_team(), failing, count, source="test")
    _index(local_team())
    assert _blocks("port") == [(3, "in_context"), (3, "lost")]
    assert _blocks("port", error=True) == [(3, "in_context")]
    assert _blocks("port", session=made.pk) == [(3, "lost")]
    assert _blocks("port", tool="read") == [(3, "in_context"), (3, "lost")]
    assert _blocks("port", tool="bash") == []
    assert _blocks("checkout", kind="user") == [(1, "named")]


def test_what_a_managed_context_offloaded() -> None:
    stored = grown(12)
    Session.objects.filter(pk=stored.pk).update(source="api")
    _index(stored.team)
    program = Program(stored.team)
    hits = program.get(f"/sessions/{stored.pk}/search?q=handler_1_7")["hits"]
    run = Run.objects.get(session=stored, origin=Run.Origin.MANAGED)
    entry = run.entries.get(block__message__seq=hits[0]["message"])
    assert [(hit["state"], hit["run"]) for hit in hits] == [("retrievable", "managed")]
    assert hits[0]["state_since"] == entry.to_step
    newest = program.get(f"/sessions/{stored.pk}/search?q=handler_12_7")["hits"]
    assert [hit["state"] for hit in newest] == ["in_context"]
    run.delete()
    lived = program.get(f"/sessions/{stored.pk}/search?q=handler_1_7")["hits"]
    assert [(hit["state"], hit["run"]) for hit in lived] == [("in_context", "recorded")]


def test_from_an_append_to_the_page_and_to_deletion(program: Program, jobs_wait: None) -> None:
    stored = append(program.team, session(*_forgetful()), count, source="test").session
    waiting = program.get("/search?q=8417")
    assert (waiting["hits"], waiting["waiting"]) == ([], 1)
    job = indexing.ask(program.team)
    assert job is not None
    assert indexing.ask(program.team) == job, "one job does for all that ask"
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    assert attempt(job.pk, claimed.token)
    assert not Job.objects.exists(), "it leaves no row"
    assert indexing.ask(program.team) is None

    answer = program.get("/search?q=8417+drain")
    (hit,) = answer["hits"]
    assert (answer["waiting"], answer["next"], answer["complete"]) == (0, None, True)
    assert [part["text"] for part in hit["excerpt"] if part["matches"]] == ["8417", "DRAIN"]
    assert (hit["block"], hit["step"], hit["state"]) == ("m3.0", 2, "lost")
    assert hit["session"]["id"] == str(stored.pk)
    assert hit["url"].endswith(f"/sessions/{stored.pk}/steps/2/?m=3")

    page = page_of(signed_in(program.team), "/search/?q=8417")
    assert "<mark>8417</mark>" in page.markup
    assert escape("<b>&") in page.markup
    assert page.links[f"lost at step {hit['state_since']}"].endswith("?m=3")
    assert page.links["Why?"] == f"/sessions/{stored.pk}/why/?text=8417"
    assert f"/sessions/{stored.pk}/steps/2/?m=3" in page.links.values()

    key = stored.blocks.get(message__seq=3).pk
    words = ["8417", label("session", stored.pk)]
    owners = [label("team", program.team.pk)]
    assert text_index.holding(words, owners, below=None, limit=5) == [key]
    stored.delete()
    assert text_index.holding(words, owners, below=None, limit=5) == []
    assert program.get("/search?q=8417")["hits"] == []


def test_what_grows_is_indexed_once() -> None:
    team = local_team()
    _stored()
    grown = [*_forgetful(), user("One more 8417.", key="k8")]
    made = append(team, session(*grown), count, source="test").session
    assert indexing.index_some(team) == 1
    assert indexing.index_some(team) == 0
    made.refresh_from_db()
    assert made.indexed_blocks == made.block_count
    assert [seq for seq, _ in _blocks("8417")] == [10, 3]


def test_two_jobs_at_once_index_a_block_once(monkeypatch: pytest.MonkeyPatch) -> None:
    team = local_team()
    append(team, session(*_forgetful()), count, source="test")
    parts = indexing._next_parts(team)
    monkeypatch.setattr(indexing, "_next_parts", lambda _: parts)
    assert indexing.index_some(team) == indexing.index_some(team) > 0
    owners = [label("team", team.pk)]
    assert len(text_index.holding(["8417"], owners, below=None, limit=5)) == 1


def test_another_team_finds_nothing(program: Program, stranger: Program) -> None:
    stored = _stored(program.team)
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
    monkeypatch.setattr(searching, "FEW", few)
    stored = _stored(program.team)
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
    for wrong in ("since=soon", "cost=-1", "kind=nonsense", "limit=51", "after=-1"):
        assert_problem(program.ask("GET", f"/search?q=x&{wrong}"), 422)


def test_pages_go_on_where_they_ended(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "STRIDES", (2, 4))
    monkeypatch.setattr(searching, "AT_ONCE", 3)
    texts = [user(f"needle number {n}", key=f"k{n}") for n in range(11)]
    append(program.team, session(*texts), count, source="test")
    append(program.team, session(user("a needle", key="o"), external_id="s2"), count, source="test")
    _index(program.team)
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
    every = page_of(client, "/search/" + shown.links["All hits in this session"])
    assert every.markup.count("<mark>") == 11


def test_time_that_runs_out_is_said(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _stored(program.team)
    monkeypatch.setattr(searching, "DEADLINE", -1)
    answer = program.get("/search?q=port+drain")
    assert (answer["complete"], len(answer["hits"])) == (False, 1)
    rest = program.get(f"/search?q=port+drain&after={answer['next']}")
    assert (rest["hits"], rest["complete"], rest["next"]) == ([], True, None)
    monkeypatch.setattr(searching, "FEW", -1)
    page = page_of(signed_in(program.team), "/search/?q=port&agent=absent")
    assert "No match so far" in page.text


def test_what_the_page_says_when_there_is_nothing(jobs_wait: None) -> None:
    client = signed_in()
    assert "Nothing to look up" in page_of(client, f"/search/?q={quote('->')}").text
    assert "Nothing matches" in page_of(client, "/search/?q=xyzzy").text
    append(local_team(), session(*_forgetful()), count, source="test")
    page = page_of(client, "/search/?q=8417")
    assert "1 session with new text is waiting to be indexed" in page.text
    assert "It has not read all sessions yet" in page.text


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


@given(query=st.text(max_size=60) | st.text("\"'()*:^-+AND OR NEAR/\\§\x00", max_size=30))
def test_any_text_is_a_query(query: str) -> None:
    team = Team(pk="00000000-0000-0000-0000-000000000001")
    found = search([team], Wanted(SearchQuery.of(query)), Session.objects.all())
    assert found.hits == []


@given(text=st.text(max_size=80))
def test_a_text_is_found_by_its_own_pieces(text: str) -> None:
    query = SearchQuery.of(f'"{text.replace(chr(34), " ")}"')
    plain = text.replace(chr(34), " ")
    assert query.matches(plain)
    assert set(query.words) <= words_of(plain)
    shown = query.excerpt(plain, before=80, after=220)
    "".join(part for _, part in shown).encode()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about FTS5")
@pytest.mark.django_db(transaction=True)
def test_words_of_a_deleted_session_leave_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    team = local_team()
    _stored(team, "kept")
    removed = append(team, session(user("qkzwxj", key="k")), count, source="test").session
    _index(team)
    assert _in_file(b"kzwxj")
    removed.delete()
    assert _in_file(b"kzwxj"), "it is only marked as removed"
    job = Job.objects.get(kind="index")
    assert job.payload == {"removed": True}
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    assert attempt(job.pk, claimed.token)
    assert not _in_file(b"kzwxj")
    assert [seq for seq, _ in _blocks("8417")] == [3]


def _in_file(word: bytes) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT block FROM {text_index.TABLE}_data")
        return any(word in bytes(block) for (block,) in cursor.fetchall())
