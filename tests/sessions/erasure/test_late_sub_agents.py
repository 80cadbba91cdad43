"""Sub-agents that come while their session is erased, or after it, are erased or refused."""

from __future__ import annotations

import json

import pytest

from sessions.actions.erasure import erase, receipts
from sessions.models import Erasure, Session
from tests.sessions.erasure.erasing import MARK, do_jobs, erased, eraser, stored_bytes, talk
from tests.sessions.imports.traced_trees import TREES, send
from tests.sessions.programs import Program, assert_problem

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def test_none_begins_from_the_request_on(program: Program):
    talk(program, "run")
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    for is_erased in (False, True):
        if is_erased:
            erased(made["id"])
        assert_problem(program.ask("PUT", "/sessions/run/sub", {"parent": "run"}), 410)
        assert not Session.objects.filter(external_id="run/sub").exists()


def test_one_of_an_open_transaction_goes_too(program: Program):
    talk(program, "run", marked="heron")
    late = talk(program, "late")
    below = talk(program, "below")
    made = eraser(program).ask("DELETE", "/sessions/run").json()
    Session.objects.filter(pk=late.pk).update(parent_external_id="run")
    Session.objects.filter(pk=below.pk).update(parent=late, parent_external_id="late")
    receipt = json.loads(erased(made["id"]).receipt)
    assert len(receipt["sessions"]) == 3
    assert not Session.objects.exists()
    assert MARK.encode() not in stored_bytes()
    assert receipts.verify(receipt).holds


def test_there_is_no_receipt_while_one_is_left(program: Program, monkeypatch: pytest.MonkeyPatch):
    talk(program, "run")
    late = talk(program, "late", marked="heron")
    eraser(program).ask("DELETE", "/sessions/run")
    found = iter([[], [late.pk]])
    monkeypatch.setattr(erase, "came_late", lambda _: next(found))
    with pytest.raises(AssertionError):
        do_jobs()
    assert Erasure.objects.get().finished is None


def test_a_receipt_does_not_hold_while_one_is_left(program: Program):
    talk(program, "run")
    late = talk(program, "late", marked="heron")
    receipt = json.loads(
        erased(eraser(program).ask("DELETE", "/sessions/run").json()["id"]).receipt
    )
    assert receipts.verify(receipt).holds
    Session.objects.filter(pk=late.pk).update(parent_external_id="run")
    assert receipts.verify(receipt).sessions == 1


def test_spans_of_an_erased_conversation_begin_no_other_context(program: Program):
    spans = TREES["sub-agents"]
    send(program.team, [spans[:2]])
    (session,) = Session.objects.all()
    made = eraser(program).ask("DELETE", f"/sessions/{session.external_id}").json()
    send(program.team, [spans[2:]])
    assert list(Session.objects.all()) == [session]
    erased(made["id"])
    send(program.team, [spans])
    assert not Session.objects.exists()
