"""Sharing: from a task that is done to the end of another session's context, once and safely."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.live import folds
from sessions.actions.live.deliver import deliver, delivery
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.live.managed import catch_up, plan_of, record_context
from sessions.actions.live.requests.on_request import request_compaction
from sessions.actions.memory import shares
from sessions.actions.memory.boards import board_of
from sessions.actions.memory.gathering import gather
from sessions.actions.memory.received import KNOWN
from sessions.actions.memory.shares import CannotSubscribe, readable, subscribe
from sessions.models import Delivery, Gathering, Job, Note, Session, Share, Team
from sessions.models.memory.memory import board_query, search
from tests.sessions.pages import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    folds.forget_all()
    yield
    folds.forget_all()


def begin(name: str, team: Team | None = None, **fields: Any) -> Session:
    return put_session(team or local_team(), name, session_fields(fields))[0]


def say(session: Session, *messages: dict[str, Any]) -> None:
    deliver(session, delivery({"messages": list(messages)}))
    session.refresh_from_db()


def person(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def done(name: str = "one", text: str = "The port is 8080.", **fields: Any) -> Session:
    session = begin(name, agent="finder", **fields)
    say(session, person("Find the port."), agent(text))
    return begin(name, outcome="succeeded")


def work(kind: str) -> None:
    """Do all jobs of a kind, as a worker does."""
    while (job := Job.objects.filter(kind=kind, state="queued").first()) is not None:
        claimed = jobs.claim(job.pk)
        assert claimed is not None and claimed.token is not None
        attempt(claimed.pk, claimed.token)


def knowledge(session: Session) -> list[str]:
    rows = board_of(session).notes.filter(kind="knowledge", removed=None)
    return list(rows.values_list("text", flat=True))


def test_a_task_that_is_done_is_shared_with_who_subscribed() -> None:
    others = {
        kind: begin(f"to {kind}", agent="writer")
        for kind in ("agent", "task", "team", "missing", "wrong")
    }
    subscribe(others["agent"], "agent", "finder", COMMAND)
    subscribe(others["task"], "task", "ports", COMMAND)
    subscribe(others["team"], "team", "", COMMAND)
    subscribe(others["wrong"], "agent", "loser", COMMAND)
    done(task="ports")
    work("tend")
    work("share")
    share = Share.objects.get()
    assert (share.cause, share.number, share.summary) == ("task_done", 1, "The port is 8080.")
    assert "<task>Find the port.</task>" in share.board and share.sent
    got = {kind: knowledge(session) for kind, session in others.items()}
    come = ["The port is 8080."]
    assert got == {"agent": come, "task": come, "team": come, "missing": [], "wrong": []}
    answer = signed_in().get(f"/api/v1/sessions/{others['agent'].external_id}/shares").json()
    assert [one["delivered"] for one in answer["received"]] == [3], (
        "of the share, not of this session"
    )
    assert not Job.objects.filter(kind="share").exists()


def test_each_share_comes_once_however_often_it_is_brought() -> None:
    reader = begin("reader")
    subscribe(reader, "team", "", COMMAND)
    session = done()
    work("tend")
    share = Share.objects.get()
    shares.share_due(session)
    assert shares.deliver(share) == 1
    assert shares.deliver(share) == 0
    board_of(reader).notes.all().delete()
    assert shares.deliver(share) == 0
    assert knowledge(reader) == [] and Share.objects.count() == 1
    assert Delivery.objects.count() == 1


def test_a_share_whose_worker_was_never_woken_is_found_by_the_next() -> None:
    reader = begin("reader")
    subscribe(reader, "team", "", COMMAND)
    done()
    work("tend")
    Job.objects.filter(kind="share").delete()  # the broker's only record of it
    other = begin("two", agent="finder")
    say(other, person("More."), agent("Found more."))
    begin("two", outcome="failed")
    work("tend")
    work("share")
    assert len(knowledge(reader)) == 2


def test_nothing_comes_to_another_team_or_from_before() -> None:
    theirs = Team.objects.create(slug="theirs", name="Theirs")
    stranger = begin("one", theirs)
    subscribe(stranger, "agent", "finder", COMMAND)
    done()
    work("tend")
    late = begin("late")
    subscribe(late, "team", "", COMMAND)
    work("share")
    assert knowledge(stranger) == knowledge(late) == []
    assert search([theirs], "port") == []


def test_what_cannot_be_subscribed_to() -> None:
    with pytest.raises(CannotSubscribe):
        subscribe(begin("reader"), "agent", "  ", COMMAND)
    one = subscribe(begin("reader"), "team", "x", COMMAND)
    assert subscribe(begin("reader"), "team", "", COMMAND) == one


def test_it_stands_at_the_end_of_the_context_and_the_prefix_stays() -> None:
    reader = begin("reader", policy="offload-first", model="claude-sonnet-4-5")
    subscribe(reader, "team", "", COMMAND)
    say(reader, person("Write the docs."), agent("I begin."), person("Go on."))
    before = catch_up(reader)
    done(text="The port is 8080, write to ann@acme.io.")
    work("tend")
    work("share")
    after = catch_up(reader)
    assert after.blocks == before.blocks
    assert after.ending.whole.startswith(KNOWN)
    assert "The port is 8080, write to [EMAIL_1]." in after.ending.whole
    assert 'from="finder" trust="unchecked"' in after.ending.whole
    assert after.standing.used == before.standing.used + after.ending.tokens
    given = record_context(after, "anthropic")
    row = Note.objects.get(share__isnull=False)
    row.delete()
    again = plan_of(given)
    assert (again.ending, again.blocks) == (after.ending, after.blocks)
    assert again.standing.used == after.standing.used
    assert catch_up(reader).ending == before.ending


def test_what_it_rests_on_may_change_before_and_after_it_came() -> None:
    one, two = begin("reader"), begin("second")
    subscribe(one, "team", "", COMMAND)
    session = begin("one", agent="finder")
    write = {"type": "tool_use", "id": "w1", "name": "Write",
             "input": {"file_path": "port.py", "content": "PORT = 1\n"}}  # fmt: skip
    result = {"type": "tool_result", "tool_use_id": "w1", "content": "ok"}
    say(session, person("Go."), {"role": "assistant", "content": [write]}, person_of(result))
    gather(session)
    shares.share(session, "hand", "by_hand", summary="The port is 1.")
    work("share")
    assert list(stale(one)) == [""]
    subscribe(two, "team", "", COMMAND)
    shares.share(session, "again", "by_hand", summary="The port is 1.")
    say(session, {"role": "assistant", "content": [
        {**write, "id": "w2", "input": {"file_path": "port.py", "content": "PORT = 2\n"}}
    ]}, person_of({**result, "tool_use_id": "w2"}))  # fmt: skip
    gather(session)
    work("share")
    assert list(stale(one)) == ["port.py changed"] * 2
    assert list(stale(two)) == ["port.py changed"], "it was stale before it came"


def person_of(block: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": [block]}


def stale(session: Session) -> Any:
    return board_of(session).notes.order_by("pk").values_list("stale", flat=True)


# Search


def test_the_search_says_what_it_found_and_where() -> None:
    done(text="The login fails as the cookie has no SameSite.")
    work("tend")
    session = begin("two", task="web")
    say(session, person("Draw a logo."))
    gather(session)
    found = search([local_team()], "cookie SameSite")
    assert {row.kind for row in found} == {"task_done", "summary"}
    assert found[0].session == Session.objects.get(external_id="one").pk
    assert [row.text for row in search([local_team()], "logo", task="web")] == ["Draw a logo."]
    assert search([local_team()], "logo", task="other") == search([local_team()], "  ") == []
    assert board_query(board_of(session)) == "Draw a logo."
    assert len(search([local_team()], "the logo login cookie", limit=1)) == 1


def test_rare_words_count_more_and_stale_knowledge_less() -> None:
    session = begin("one")
    say(session, person("Go."))
    board = board_of(session)
    for number, (text, old) in enumerate(
        [("port port", ""), ("port zebra", ""), ("port zebra lion", "a.py changed")]
    ):
        Note.objects.create(
            board=board, key=str(number), kind="knowledge", text=text, by="agent", stale=old
        )
    texts = [row.text for row in search([local_team()], "port zebra")]
    assert texts == ["port zebra", "port zebra lion", "port port"]


def test_a_summary_reads_well_without_its_markup() -> None:
    text = (
        "<current_work>\nFix a &lt; b.\n</current_work>\n"
        '<file_operation path="a.py" action="edit" ref="m1.0@aa"/>'
    )
    assert readable(text) == "Current work:\nFix a < b.\na.py: edit"


def test_gathering_is_forgotten_with_its_session() -> None:
    session = done()
    gather(session)
    session.delete()
    assert not Gathering.objects.exists() and not Share.objects.exists()


def test_each_compaction_of_a_live_session_is_shared_once() -> None:
    reader = begin("reader")
    subscribe(reader, "agent", "finder", COMMAND)
    session = begin("one", agent="finder", policy="sliding-window", model="claude-sonnet-4-5")
    for number in range(12):
        say(
            session, person(f"Look at part {number}. " + "It is long. " * 60), agent("I did. " * 60)
        )
    request_compaction(session)
    work("compact")
    gather(session)
    for _ in range(2):
        shares.share_due(session)
    share = Share.objects.get()
    assert (share.cause, share.key) == ("compaction", "revision:1")
    assert "Look at part" in share.summary and "<task>Look at part 0." in share.board
    work("share")
    assert len(knowledge(reader)) == 1
