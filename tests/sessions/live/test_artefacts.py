"""Artefacts are made once, without secrets, and found by their inputs."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from compaction import tokens
from compaction.context.blocks import FileRef
from compaction.proposals.plan import FileText, Span
from compaction.summaries.summary import problems
from sessions.actions.accounts.teams import local_team
from sessions.actions.live.artefacts import digest, make, outline_text, summary_text
from sessions.actions.record.append import append
from sessions.models import Artefact, Blob, Session, Team
from sessions.models.record.values import contents
from tests import provider as at
from tests.build import Talk
from tests.sessions.made import reading

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def session() -> Session:
    return append(local_team(), reading(2), tokens.counted, source="test").session


def span(*said: str, **fields: Any) -> Span:
    talk = Talk()
    talk.user("Please mend the parser, password=hunter2, and write to ann@acme.io.")
    for text in said or ("all is well\n" * 100,):
        talk.respond()
        use = talk.call("Read", {"file_path": "src/a.py"}, file=FileRef("src/a.py", "read"))
        talk.result(use, text)
    blocks = tuple(talk.blocks)
    return Span(**({"form": "nine", "blocks": blocks, "originals": blocks, "previous": None,
                    "budget": 500} | fields))  # fmt: skip


def test_a_summary_is_there_once_it_was_made(session: Session) -> None:
    wanted = span()
    assert summary_text(session, wanted) is None
    made = make(session, wanted)
    text = summary_text(session, wanted)
    assert text is not None and problems(text) == []
    assert (made.kind, made.maker, made.note) == ("summary", "extractive", "")
    assert contents(session, [made.sha])[made.sha].decode() == text
    assert make(session, wanted) == made
    assert Artefact.objects.count() == 1


def test_its_secrets_are_masked_and_counted(session: Session) -> None:
    made = make(session, span())
    text = summary_text(session, span())
    assert text is not None and "hunter2" not in text and "acme.io" not in text
    assert "[PASSWORD_1]" in text and "[EMAIL_1]" in text
    assert made.masked == {"PASSWORD": 1, "EMAIL": 1}


CHANGES: list[dict[str, Any]] = [
    {"form": "window"},
    {"budget": 501},
    {"previous": "<summary>"},
    {"instructions": "keep SQL"},
    {"board": "<task>mend</task>"},
    {"kept": span().blocks[:1]},
    {"blocks": span().blocks[1:]},
    {"originals": span("other text").blocks},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_whatever_it_is_made_from_names_it(change: dict[str, Any]) -> None:
    assert digest("summary", "me", replace(span(), **change)) != digest("summary", "me", span())


def test_the_digest_is_of_this_kind_by_this_maker() -> None:
    assert digest("summary", "me", span()) == digest("summary", "me", span())
    assert digest("summary", "you", span()) != digest("summary", "me", span())
    file = FileText("a.py", "x", "1" * 64)
    assert digest("outline", "me", file) != digest("outline", "me", replace(file, sha="2" * 64))
    assert digest("outline", "me", file) != digest("outline", "me", replace(file, path="a.ts"))
    assert len(digest("outline", "me", replace(file, path="\ud800"))) == 64


def test_one_query_finds_none(session: Session, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert summary_text(session, span()) is None
    with django_assert_num_queries(1):
        assert outline_text(session, FileText("a.py", "x", "1" * 64)) is None


def test_an_outline_is_made_beside_too(session: Session) -> None:
    body = "".join(f"def part_{n}(text: str) -> int:\n    return {n}\n\n" for n in range(200))
    file = FileText("src/parse.py", body, "1" * 64)
    assert outline_text(session, file) is None
    made = make(session, file)
    assert (made.kind, made.maker, made.cost_microusd) == ("outline", "tree-sitter", None)
    text = outline_text(session, file)
    assert text is not None and "def part_7(text: str) -> int" in text and len(text) < len(body)
    assert make(session, file) == made


def test_other_sessions_and_teams_have_their_own(session: Session) -> None:
    make(session, span())
    other = append(
        Team.objects.create(name="Others", slug="others"), reading(2), tokens.counted, source="t"
    ).session
    assert summary_text(other, span()) is None
    assert make(other, span()).sha == make(session, span()).sha
    assert Blob.objects.filter(sha=make(other, span()).sha).count() == 2


def test_a_fallback_is_found_as_what_was_asked_for(
    session: Session, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with at.provider() as there:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", there.url)
        settings.SUMMARIZER, settings.SUMMARIZER_MODEL = "anthropic", "claude-haiku-5-5"
        there.then(at.Refusal(), at.Refusal())
        made = make(session, span())
        assert (made.maker, made.model) == ("extractive", "claude-haiku-5-5")
        assert made.note == "claude-haiku-5-5 gave no summary: the model declined."
        assert made.usage["requests"] == 2 and made.cost_microusd
        assert summary_text(session, span()) is not None
        assert make(session, span()) == made and len(there.bodies) == 2
        for body in there.bodies:
            assert "hunter2" not in str(body) and "acme.io" not in str(body)
            assert "[PASSWORD_1]" in str(body)
        settings.SUMMARIZER = "extractive"
        assert summary_text(session, span()) is None


@pytest.mark.django_db(transaction=True)
def test_two_workers_make_one(session: Session) -> None:
    barrier, made = threading.Barrier(2), []

    def work() -> None:
        try:
            barrier.wait(30)
            made.append(make(session, span()).pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # A failed one stored nothing.
    assert len(made) == 2 and len(set(made)) == 1
    assert Artefact.objects.count() == 1
