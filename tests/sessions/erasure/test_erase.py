"""An erased session is gone: every row, every byte; its receipt says so and can be verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import models

from sessions.actions.erasure import erase, receipts, rows
from sessions.models import AuditEntry, Blob, Erasure, Job, Session, Team
from tests.sessions.erasure.erasing import MARK, SHARED, do_jobs, erased, eraser, stored_bytes, talk
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import one_of_everything

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def ways_to_session() -> Iterator[tuple[type[models.Model], str]]:
    """Every model that leads to a session, with the way, from the models themselves."""
    for model in apps.get_app_config("agent_sessions").get_models():
        for field in model._meta.get_fields():
            if getattr(field, "related_model", None) is Session and field.concrete:
                yield model, field.name


def test_the_table_names_every_model_that_points_at_a_session():
    listed = {(model, way) for model, ways in rows.TABLES for way in ways}
    assert set(ways_to_session()) - {(Session, "parent")} <= listed


def test_every_row_of_the_session_goes_and_no_other(program: Program):
    one_of_everything(program)
    other = talk(program, "other", marked="heron")
    before = {model: model._default_manager.count() for model, _ in rows.TABLES}
    session = Session.objects.get(team=program.team, external_id="run")
    mine = rows.counted([session.pk])
    made = eraser(program).ask("DELETE", "/sessions/run?reason=asked%20for")
    assert made.status_code == 202, made.content
    receipt = json.loads(erased(made.json()["id"]).receipt)
    assert not Session.objects.filter(pk=session.pk).exists()
    for model, way in ways_to_session():
        assert not model._default_manager.filter(**{way: session.pk}).exists(), model
    for model, _ in rows.TABLES:
        gone = before[model] - model._default_manager.count()
        assert gone == mine.get(rows.name_of(model), 0), model
    assert Session.objects.filter(pk=other.pk).exists()
    assert receipt["rows"]["message"] == mine["message"] > 0
    assert (receipt["reason"], receipt["kind"]) == ("asked for", "session")
    acts = AuditEntry.objects.filter(named=made.json()["id"]).order_by("pk")
    assert [row.action for row in acts] == ["erasure.asked", "erasure.finished"]


@pytest.mark.fault("K9")
def test_no_byte_of_it_is_left(program: Program):
    talk(program, "other", marked="heron")
    talk(program, "run")
    assert stored_bytes().count(MARK.encode()) > 20
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    receipt = erased(made["id"]).receipt
    left = stored_bytes()
    assert MARK.encode() not in left
    assert b"heron" in left
    assert MARK not in receipt.lower()
    assert MARK not in receipts.receipts_file().read_text().lower()


def test_content_of_other_sessions_stays(program: Program):
    one, other = talk(program, "run"), talk(program, "other", marked="heron")
    shared = set(one.blocks.values_list("sha", flat=True)) & set(
        other.blocks.values_list("sha", flat=True)
    )
    assert shared
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    receipt = json.loads(erased(made["id"]).receipt)
    kept = set(Blob.objects.values_list("sha", flat=True))
    assert shared <= kept
    assert receipt["kept"]["content_used_elsewhere"] >= len(shared)
    assert set(other.blocks.values_list("sha", flat=True)) <= kept
    said = program.get("/sessions/other/messages")["messages"]
    assert SHARED in json.dumps(said)


@pytest.mark.fault("K9")
def test_an_agent_that_goes_on_gets_410(program: Program):
    session = talk(program, "run")
    assert eraser(program).ask("DELETE", "/sessions/run").status_code == 202
    more = {"messages": [{"role": "user", "content": "more"}]}
    asked = [
        ("POST", "/sessions/run/messages", more),
        ("POST", f"/sessions/{session.pk}/messages", more),
        ("PUT", "/sessions/run", {"title": "again"}),
        ("GET", "/sessions/run/context", None),
        ("GET", "/sessions/run", None),
    ]
    for done in (False, True):
        for method, address, body in asked:
            said = assert_problem(program.ask(method, address, body), 410)
            assert ("was erased" if done else "is being erased") in said["detail"]
        do_jobs()


def test_a_foreign_team_cannot_tell_it_from_a_missing_one(program: Program, stranger: Program):
    session = talk(program, "run")
    for _ in range(2):
        for name in ("run", str(session.pk)):
            foreign = stranger.ask("GET", f"/sessions/{name}")
            missing = stranger.ask("GET", "/sessions/never")
            assert (foreign.status_code, foreign.content) == (404, missing.content)
        assert stranger.ask("DELETE", f"/sessions/{session.pk}").status_code == 404
        eraser(program).ask("DELETE", "/sessions/run")
        do_jobs()


def test_only_a_key_for_it_may_erase(program: Program):
    talk(program, "run")
    said = assert_problem(program.ask("DELETE", "/sessions/run"), 403)
    assert "--scope erase" in said["detail"]
    assert Session.objects.filter(external_id="run").exists()


def test_a_dry_run_counts_and_changes_nothing(program: Program):
    session = talk(program, "run")
    said = eraser(program).ask("DELETE", "/sessions/run?dry_run=true")
    assert said.status_code == 200
    counted = said.json()
    assert counted["rows"]["block"] == session.blocks.count()
    assert counted["bytes"] == sum(session.blocks.values_list("bytes", flat=True))
    assert not Erasure.objects.exists()
    assert program.get("/sessions/run")["messages"]


@pytest.mark.parametrize("stop_at", (1, 4, 9, 20, 33))
def test_it_continues_where_it_was_killed(
    stop_at: int, program: Program, monkeypatch: pytest.MonkeyPatch
):
    """Whatever transaction was the last, the next attempt ends it, and only then is a receipt."""
    session = talk(program, "run")
    eraser(program).ask("DELETE", "/sessions/run")
    made = Erasure.objects.get()
    steps = 0

    class Killed(Exception):
        pass

    def heard() -> None:
        nonlocal steps
        steps += 1
        if steps == stop_at:
            raise Killed

    monkeypatch.setattr(rows, "AT_ONCE", 3)
    try:
        erase.carry_out(made, heard)
    except Killed:
        made.refresh_from_db()
        assert not made.receipt and not receipts.receipts_file().exists()
    do_jobs()
    made.refresh_from_db()
    receipt = json.loads(made.receipt)
    assert receipt["rows"]["block"] == session.block_count
    assert receipts.verify(receipt).holds
    assert MARK.encode() not in stored_bytes()


@pytest.mark.fault("K9")
def test_what_a_job_wrote_meanwhile_goes_too(
    program: Program, monkeypatch: pytest.MonkeyPatch, settings: Any
):
    """A job process takes a second to be stopped, and commits once more."""
    settings.ERASE_GRACE_SECONDS = 0
    session = talk(program, "run")
    eraser(program).ask("DELETE", "/sessions/run")
    delete, late = rows.delete, [f"late {MARK}".encode()]

    def deleted(one: Session, heard: Any) -> None:
        delete(one, heard)
        if late:
            blob = Blob.of(one.team_id, late.pop())
            blob.save()
            session.artefacts.create(kind="summary", digest="x", sha=blob.sha, maker="extractive")

    monkeypatch.setattr(erase.rows, "delete", deleted)
    do_jobs()
    assert not Session.objects.filter(pk=session.pk).exists()
    assert MARK.encode() not in stored_bytes()


def test_sub_agents_go_with_it(program: Program):
    talk(program, "run")
    program.ask("PUT", "/sessions/child", {"parent": "run"})
    program.ask("PUT", "/sessions/grandchild", {"parent": "child"})
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    assert len(json.loads(erased(made["id"]).receipt)["sessions"]) == 3
    assert not Session.objects.exists()


def test_jobs_of_it_end(program: Program):
    session = talk(program, "run")
    assert Job.objects.filter(payload__session=str(session.pk)).exists()
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    erased(made["id"])
    assert not Job.objects.filter(payload__session=str(session.pk)).exists()


# Receipts


@pytest.fixture
def receipt(program: Program) -> dict[str, Any]:
    talk(program, "run")
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    found: dict[str, Any] = json.loads(erased(made["id"]).receipt)
    return found


def verified(program: Program, receipt: dict[str, Any]) -> dict[str, Any]:
    said = eraser(program).ask("POST", f"/erasures/{receipt['erasure']}/verify", receipt)
    assert said.status_code == 200, said.content
    found: dict[str, Any] = said.json()
    return found


@pytest.mark.fault("K9")
def test_a_receipt_holds(program: Program, receipt: dict[str, Any]):
    said = verified(program, receipt)
    assert (said["holds"], said["signature"]) == (True, "valid")
    assert said["checked"] == len(receipt["content"]) + 1 > 10
    again = eraser(program).ask("GET", f"/erasures/{receipt['erasure']}").json()
    assert (again["receipt"], again["state"]) == (receipt, "done")


@pytest.mark.parametrize("field", ["reason", "finished", "content", "sessions", "rows", "salt"])
def test_a_changed_receipt_proves_nothing(program: Program, receipt: dict[str, Any], field: str):
    other = {"content": receipt["content"][1:], "sessions": [], "rows": {}}
    changed = receipt | {field: other.get(field, "2026-01-01T00:00:00Z")}
    said = verified(program, changed)
    assert (said["holds"], said["signature"]) == (False, "changed")


@pytest.mark.parametrize(
    "wrong",
    [
        {"signature": {"key": "a", "hmac_sha256": "é"}},
        {"content": [[]]},
        {"sessions": [{"id": str(uuid4())}]},
        {"sessions": [{"id": str(uuid4()), "external_id": []}]},
        {"finished": "2026-01-01T00:00:00"},
        {"rule": []},
    ],
)
def test_a_malformed_receipt_is_refused(
    program: Program, receipt: dict[str, Any], wrong: dict[str, Any], tmp_path: Path
):
    address, changed = f"/erasures/{receipt['erasure']}/verify", receipt | wrong
    assert_problem(eraser(program).ask("POST", address, changed), 422)
    (file := tmp_path / "receipt.json").write_text(json.dumps(changed))
    with pytest.raises(CommandError, match="not a receipt"):
        call_command("erase", "--verify", str(file))


def test_another_servers_receipt_is_told(
    program: Program,
    receipt: dict[str, Any],
    settings: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    settings.SECRET_KEY = "another" * 8
    said = verified(program, receipt)
    assert (said["holds"], said["signature"]) == (False, "another key")
    (file := tmp_path / "receipt.json").write_text(json.dumps(receipt))
    with pytest.raises(SystemExit):
        call_command("erase", "--verify", str(file))
    printed = capsys.readouterr().out
    assert printed.startswith("cannot be checked: Another CONTEXTLAB_SECRET_KEY made the")


def test_content_that_is_back_is_found(program: Program, receipt: dict[str, Any]):
    """As after a restore: the same session, and its content."""
    pk = receipt["sessions"][0]["id"]
    team = Team.objects.get(pk=program.team.pk)
    session = Session.objects.create(pk=pk, team=team, external_id="moved")
    Session.objects.filter(pk=pk).update(created="2026-01-01T00:00Z")
    blob = Blob.of(team.pk, json.dumps({"type": "text", "text": f"Feed the {MARK}."}).encode())
    assert receipts.verify(receipt).sessions == 1
    session.delete()
    assert receipts.verify(receipt).holds
    assert blob.sha  # not stored: nothing to find


def test_a_later_session_with_the_same_text_is_told_apart(
    program: Program, receipt: dict[str, Any]
):
    said = {"messages": [{"role": "user", "content": f"Feed the {MARK}."}]}
    program.post("/sessions/new/messages", said)
    found = receipts.verify(receipt)
    assert (found.holds, found.stored_again) == (True, 1)
    Session.objects.filter(external_id="new").update(created="2026-01-01T00:00Z")
    found = receipts.verify(receipt)
    assert (found.holds, found.content) == (False, 1)


@pytest.mark.parametrize("body", [{"erasure": "x"}, {"version": 1}, {"receipt": []}])
def test_what_is_no_receipt_is_refused(
    program: Program, receipt: dict[str, Any], body: dict[str, Any]
):
    address = f"/erasures/{receipt['erasure']}/verify"
    assert_problem(eraser(program).ask("POST", address, body), 422)


def test_a_foreign_receipt_looks_like_a_missing_one(stranger: Program, receipt: dict[str, Any]):
    address = f"/erasures/{receipt['erasure']}"
    assert_problem(eraser(stranger).ask("POST", f"{address}/verify", receipt), 404)
    assert_problem(eraser(stranger).ask("GET", address), 404)


def test_the_receipt_is_kept_beside_the_database(receipt: dict[str, Any], tmp_path: Path):
    lines = (tmp_path / "erasures.jsonl").read_text().splitlines()
    assert [receipts.parse(line) for line in lines] == [receipt]
    assert (tmp_path / "erasures.jsonl").stat().st_mode & 0o077 == 0
