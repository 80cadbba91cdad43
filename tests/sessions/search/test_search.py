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
from sessions.models import Job, Run, Session, Team
from sessions.models.search import text_index
from sessions.models.search.looked_up import Wanted
from sessions.models.search.search import search
from sessions.models.search.search_words import SearchQuery, label, words_of
from tests.sessions.live.managed.test_managed import grown
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program
from tests.sessions.search.searched import forgetful, found_blocks, reindex, store

pytestmark = [pytest.mark.django_db, pytest.mark.store]


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
    store()
    assert found_blocks(query) == found


def test_words_with_the_same_hash_are_different_words() -> None:
    """Both have the CRC-32 0x4ddb0c25."""
    append(local_team(), session(user("plumless", key="k")), count, source="test")
    reindex(local_team())
    assert found_blocks("buckeroo") == []
    assert found_blocks("plumless") == [(1, "in_context")]


@pytest.mark.parametrize("newest", [(1, 1), (1, 2), (3, 9), (9, 9)])
@pytest.mark.parametrize("frequent", [0, 1, 5_000])
def test_frequent_words_come_in_the_same_order(
    monkeypatch: pytest.MonkeyPatch, frequent: int, newest: tuple[int, int]
) -> None:
    monkeypatch.setattr(text_index, "FREQUENT", frequent)
    monkeypatch.setattr(text_index, "NEWEST", newest)
    store()
    assert [seq for seq, _ in found_blocks("deploy")] == [7, 2, 1]
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
    reindex(local_team())
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
    made = store()
    failing = session(
        user("Try.", key="a"),
        reads("c1", "t1", "x", key="b"),
        result("t1", "no port here", error=True, key="c"),
        external_id="s2",
    )
    append(local_team(), failing, count, source="test")
    reindex(local_team())
    assert found_blocks("port") == [(3, "in_context"), (3, "lost")]
    assert found_blocks("port", error=True) == [(3, "in_context")]
    assert found_blocks("port", session=made.pk) == [(3, "lost")]
    assert found_blocks("port", tool="read") == [(3, "in_context"), (3, "lost")]
    assert found_blocks("port", tool="bash") == []
    assert found_blocks("checkout", kind="user") == [(1, "named")]


def test_what_a_managed_context_offloaded() -> None:
    stored = grown(12)
    Session.objects.filter(pk=stored.pk).update(source="api")
    stored.calls.update(context="ctx_sent")
    reindex(stored.team)
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


def test_a_stub_is_found_and_marked() -> None:
    """Words that only a replacement has: no original says "offloaded"."""
    stored = grown(12)
    assert not found_blocks("offloaded", stored.team)
    reindex(stored.team)
    program = Program(stored.team)
    page = program.get(f"/sessions/{stored.pk}/search?q=offloaded&limit=2")
    run = Run.objects.get(session=stored, origin=Run.Origin.MANAGED)
    assert run.indexed_head == run.head > 0
    assert [(hit["replacement"], hit["run"]) for hit in page["hits"]] == [(True, "managed")] * 2
    assert page["next"] < 0, "replacements come after all blocks"
    rest = program.get(f"/sessions/{stored.pk}/search?q=offloaded&after={page['next']}")
    made = run.replacements.filter(preview__icontains="offloaded", type="tool_result").count()
    assert len(page["hits"]) + len(rest["hits"]) == made
    for hit in [*page["hits"], *rest["hits"]]:
        entry = run.entries.get(block__message__seq=hit["message"], block__index=hit["index"])
        assert hit["step"] == entry.to_step, "it stands from where its original left"
        assert f"run=managed&m=r{entry.closed_by.revision.number}." in hit["url"]
    html = page_of(signed_in(), f"/search/?q=offloaded&session={stored.pk}").text
    assert html.count("replacement") >= made
    stored.delete()
    words, owners = ["offloaded"], [label("team", program.team.pk)]
    assert text_index.holding(words, owners, below=None, limit=5) == []


def test_from_an_append_to_the_page_and_to_deletion(program: Program, jobs_wait: None) -> None:
    stored = append(program.team, session(*forgetful()), count, source="test").session
    waiting = program.get("/search?q=8417")
    assert (waiting["hits"], waiting["waiting"], waiting["complete"]) == ([], 1, False)
    one = program.get(f"/sessions/{stored.pk}/search?q=8417")
    assert (one["hits"], one["waiting"], one["complete"]) == ([], 1, False)
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

    reader = signed_in(program.team)
    page = page_of(reader, "/search/?q=8417")
    assert "<mark>8417</mark>" in page.markup
    assert escape("<b>&") in page.markup
    assert page.links[f"lost at step {hit['state_since']}"].endswith("?m=3")
    assert page.links["Why?"] == f"/sessions/{stored.pk}/why/?text=8417"
    page = page_of(reader, "/search/?q=drain+8417")
    assert page.links["Why?"].endswith("?text=8417"), "not the longer, more common word"
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
    store()
    grown = [*forgetful(), user("One more 8417.", key="k8")]
    made = append(team, session(*grown), count, source="test").session
    assert indexing.index_some(team) == 1
    assert indexing.index_some(team) == 0
    made.refresh_from_db()
    assert made.indexed_blocks == made.block_count
    assert [seq for seq, _ in found_blocks("8417")] == [10, 3]


def test_two_jobs_at_once_index_a_block_once(monkeypatch: pytest.MonkeyPatch) -> None:
    team = local_team()
    append(team, session(*forgetful()), count, source="test")
    parts = indexing._next_parts(team)
    monkeypatch.setattr(indexing, "_next_parts", lambda _: parts)
    assert indexing.index_some(team) == indexing.index_some(team) > 0
    owners = [label("team", team.pk)]
    assert len(text_index.holding(["8417"], owners, below=None, limit=5)) == 1


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


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("timed out", "It cannot be out.\nThe call timed\tout.", "The call [timed out]."),
        ("no such file", "cannot file\nsuch and no file", "cannot [file] [such] and [no] [file]"),
        ("timeout", "import sys\nTIMEOUT = 3\nrest", "[TIMEOUT] = 3 rest"),
        ("8417", f"import\n{'x' * 50} port=8417 here\nother", f"…{'x' * 31} port=[8417] here"),
    ],
)  # fmt: skip
def test_an_excerpt_begins_with_the_line_that_matches_best(
    query: str, text: str, shown: str
) -> None:
    parts = SearchQuery.of(query).excerpt(text, before=37, after=220)
    assert "".join(f"[{part}]" if hit else part for hit, part in parts) == shown


@pytest.mark.skipif(connection.vendor != "sqlite", reason="about FTS5")
@pytest.mark.django_db(transaction=True)
def test_words_of_a_deleted_session_leave_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    team = local_team()
    store(team, "kept")
    removed = append(team, session(user("qkzwxj", key="k")), count, source="test").session
    reindex(team)
    assert _in_file(b"kzwxj")
    removed.delete()
    assert _in_file(b"kzwxj"), "it is only marked as removed"
    job = Job.objects.get(kind="index")
    assert job.payload == {"removed": True}
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    assert attempt(job.pk, claimed.token)
    assert not _in_file(b"kzwxj")
    assert [seq for seq, _ in found_blocks("8417")] == [3]


def _in_file(word: bytes) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT block FROM {text_index.TABLE}_data")
        return any(word in bytes(block) for (block,) in cursor.fetchall())
