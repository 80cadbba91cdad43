"""Sub-agents of a session that is erased go with it, and none comes after it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from compaction.tokens import counted
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import receipts
from sessions.actions.erasure.again import again
from sessions.actions.erasure.holds import hold
from sessions.actions.erasure.requests import ErasureRule, begin
from sessions.actions.erasure.rules import sessions_of
from sessions.actions.imports.changed import IfChanged, append_logs
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.importers import records
from sessions.models import Erasure, Hold, ImportFile, Session, Team
from tests.sessions.erasure.erasing import MARK, do_jobs, erased, eraser, stored_bytes, talk
from tests.sessions.imports.test_exports_restored import imported, lines_of
from tests.sessions.imports.traced_trees import Spans, Traced, send, text
from tests.sessions.programs import Program, assert_problem

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]

Kind = Erasure.Kind


def names(team: Team) -> set[str]:
    return set(Session.objects.filter(team=team).values_list("external_id", flat=True))


def put(program: Program, name: str, parent: str) -> Any:
    return program.ask("PUT", f"/sessions/{name}", {"parent": parent})


def asked(program: Program, name: str) -> str:
    made = eraser(program).ask("DELETE", f"/sessions/{name}")
    assert made.status_code == 202, made.content
    return str(made.json()["id"])


def verdict(erasure: str) -> receipts.ReceiptVerdict:
    return receipts.verify(json.loads(Erasure.objects.get(pk=erasure).receipt))


def test_a_new_one_is_refused_like_the_session(program: Program):
    for name in ("run", "free"):
        program.ask("PUT", f"/sessions/{name}", {})
    put(program, "sub", "run")
    made = asked(program, "run")
    for done in (False, True):
        for name, parent in (("new", "run"), ("newer", "sub"), ("free", "run"), ("free", "sub")):
            said = assert_problem(put(program, name, parent), 410)
            assert ("was erased" if done else "is being erased") in said["detail"]
        do_jobs()
    assert names(program.team) == {"free"}
    assert verdict(made).holds


def test_one_below_what_stays_is_refused(program: Program):
    """As an earlier release left them: a sub-agent whose parent was erased without it."""
    program.ask("PUT", "/sessions/run", {})
    session = Session.objects.get(external_id="run")
    put(program, "sub", "run")
    begin(program.team, ErasureRule(Kind.SESSION), [session.pk], COMMAND)
    assert_problem(put(program, "below", "sub"), 410)


@pytest.mark.parametrize("kind", [Kind.SESSION, Kind.TASK, Kind.METADATA, Kind.TEXT, Kind.TEAM])
def test_one_stored_while_it_was_asked_for_goes_too(program: Program, kind: Erasure.Kind):
    session = talk(program, "run", task="feeding", metadata={"user": "4711"})
    rule = ErasureRule(kind, {
        Kind.SESSION: "run",
        Kind.TASK: "feeding",
        Kind.METADATA: "user=4711",
        Kind.TEXT: MARK,
        Kind.TEAM: program.team.slug,
    }[kind])  # fmt: skip
    found = sessions_of(program.team, rule)
    assert found == [session.pk]
    put(program, "sub", "run")
    put(program, "below", "sub")
    said = [{"role": "user", "content": f"The {MARK} eats."}]
    program.post("/sessions/below/messages", {"messages": said})
    made = begin(program.team, rule, found, COMMAND)
    do_jobs()
    assert names(program.team) == set()
    receipt = json.loads(erased(str(made.pk)).receipt)
    assert kind == Kind.TEAM or len(receipt["sessions"]) == receipt["rows"]["session"] == 3
    assert MARK.encode() not in stored_bytes()
    assert verdict(str(made.pk)).holds
    if kind != Kind.TEAM:
        assert_problem(put(program, "sub", ""), 410)


def test_one_that_waits_for_its_parent_goes_too(program: Program):
    """An import links sub-agents when all are stored."""
    program.ask("PUT", "/sessions/run", {})
    put(program, "sub", "run")
    Session.objects.filter(external_id="sub").update(parent=None)
    made = asked(program, "run")
    do_jobs()
    assert names(program.team) == set() and verdict(made).holds


def test_retention_leaves_younger_ones(program: Program):
    program.ask("PUT", "/sessions/run", {})
    put(program, "sub", "run")
    session = Session.objects.get(external_id="run")
    made = begin(program.team, ErasureRule(Kind.RETENTION), [session.pk], COMMAND)
    do_jobs()
    assert names(program.team) == {"sub"}
    assert verdict(str(made.pk)).holds
    assert put(program, "sub", "run").status_code == 200
    assert_problem(put(program, "new", "run"), 410)


def test_what_is_on_hold_stays_and_is_said(program: Program):
    program.ask("PUT", "/sessions/run", {})
    session = Session.objects.get(external_id="run")
    put(program, "sub", "run")
    made = begin(program.team, ErasureRule(Kind.SESSION), [session.pk], COMMAND)
    hold(program.team, Hold.Kind.SESSION, "sub", COMMAND, "a lawsuit")
    do_jobs()
    assert names(program.team) == {"sub"}
    assert (verdict(str(made.pk)).sessions, verdict(str(made.pk)).holds) == (1, False)


def test_a_restored_one_is_erased_again(program: Program):
    program.ask("PUT", "/sessions/run", {})
    made = asked(program, "run")
    do_jobs()
    Session.objects.create(team=program.team, external_id="sub", parent_external_id="run")
    sub = Session.objects.create(team=program.team, external_id="below", parent_external_id="sub")
    Session.objects.filter(pk=sub.pk).update(parent=Session.objects.get(external_id="sub"))
    assert verdict(made).sessions == 2
    done = again(receipts.receipts_file())
    assert (done.receipts, done.sessions) == (1, 2)
    assert names(program.team) == set() and verdict(made).holds
    assert again(receipts.receipts_file()).sessions == 0


def test_an_export_does_not_bring_it_back(program: Program, tmp_path: Path):
    session = talk(program, "run", marked="heron")
    put(program, "sub", "run")
    whole, below = lines_of(session), lines_of(Session.objects.get(external_id="sub"))
    (head,) = (line for line in below if line["is"] == "session")
    head["external_id"] = "other"
    asked(program, "run")
    for _ in range(2):
        for lines in (whole, below):
            refused = imported(program.team, lines, tmp_path)
            assert refused.state == ImportFile.State.REFUSED
            assert any("was erased" in said for said in refused.problems), refused.problems
        do_jobs()
    assert names(program.team) == set()


def test_a_log_of_a_sub_agent_is_left_out(program: Program):
    program.ask("PUT", "/sessions/run", {})
    one = records.Session("sub", parent="run", records=[])
    log = records.Log("claude-code", [one])
    asked(program, "run")
    for _ in range(2):
        assert not list(append_logs(program.team, log, [one], counted, IfChanged.KEEP))
        (said,) = log.problems
        assert "was erased" in said
        do_jobs()
    assert names(program.team) == set()


# At once


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.parametrize("is_parent_stored", [True, False])
def test_one_that_is_on_its_way_goes_too(program: Program, *, is_parent_stored: bool):
    """Its transaction began before the erasure was asked for, and ends when the job waits for it,
    or has ended."""
    if is_parent_stored:
        program.ask("PUT", "/sessions/run", {})
    stored, done = threading.Event(), threading.Event()

    def waits() -> bool:
        return any(lock == "advisory" and not granted for lock, granted in locks())

    def store() -> None:
        try:
            with transaction.atomic():
                put_session(program.team, "sub", SessionFields(parent="run"))
                stored.set()
                while not waits() and not done.wait(0.02):
                    pass
        finally:
            connection.close()

    thread = threading.Thread(target=store)
    thread.start()
    assert stored.wait(60)
    if not is_parent_stored:
        Session.objects.create(team=program.team, external_id="run")
    made = asked(program, "run")
    do_jobs()
    done.set()
    thread.join(60)
    assert names(program.team) == set() and verdict(made).holds


def locks() -> list[tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT locktype, granted FROM pg_locks JOIN pg_database d ON d.oid = database "
            "WHERE datname = current_database()"
        )
        return list(cursor.fetchall())


# Traces


def spans_of(*prompts: str) -> Spans:
    """A call of the conversation "run" for each prompt, as of sub-agents."""
    made = Traced()
    for prompt in prompts:
        span = made.begin("chat", None, **{"conversation.id": "run"})
        made.used(span, 1)
        said = {
            "gen_ai.input.messages": [text("user", prompt)],
            "gen_ai.output.messages": [text("assistant", f"Done: {prompt}")],
        }
        span.set_attributes({name: json.dumps(one) for name, one in said.items()})
        made.end(span)
    return made.ended()


def test_spans_of_an_erased_conversation_are_left_out(program: Program):
    first, *others, last = spans_of("Find kelp.", "Dive.", "Sail.", "Row.")
    send(program.team, [[first]])
    made = asked(program, "run")
    for spans in ([others[0]], [others[1]]):
        (said,) = send(program.team, [spans])
        assert "was erased" in said
    do_jobs()
    for spans in ([last], [first]):
        (said,) = send(program.team, [spans])
        assert "was erased" in said
    assert names(program.team) == set() and verdict(made).holds


def test_spans_after_the_erasure_of_one_that_was_left(program: Program):
    """As an earlier release left them."""
    first, second, third = spans_of("Find kelp.", "Dive.", "Sail.")
    send(program.team, [[first]])
    session = Session.objects.get(external_id="run")
    send(program.team, [[second]])
    before = names(program.team)
    begin(program.team, ErasureRule(Kind.RETENTION), [session.pk], COMMAND)
    do_jobs()
    assert names(program.team) == before - {"run"} != set()
    for spans in ([third], [first]):
        (said,) = send(program.team, [spans])
        assert "was erased" in said
    assert names(program.team) == before - {"run"}
