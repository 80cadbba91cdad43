"""Erase by task, metadata, text, member and team; and again after a restore."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import receipts
from sessions.actions.erasure.again import again
from sessions.actions.erasure.holds import Held, hold, release
from sessions.actions.erasure.requests import ErasureRule, NothingToErase, begin
from sessions.actions.erasure.rules import sessions_of
from sessions.models import (
    AuditEntry,
    Blob,
    Board,
    Erasure,
    Hold,
    Job,
    Key,
    Membership,
    Review,
    SavedSearch,
    Session,
    StepNote,
    Team,
)
from tests.sessions.erasure.erasing import MARK, do_jobs, erased, eraser, stored_bytes, talk
from tests.sessions.people import member
from tests.sessions.programs import Program, assert_problem
from tests.sessions.web.world import one_of_everything

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]

Kind = Erasure.Kind


def erase(program: Program, kind: str, value: str) -> dict[str, Any]:
    """Erase by the API; return the receipt."""
    wanted = {"kind": kind, "value": value, "reason": "asked for"}
    made = eraser(program).ask("POST", "/erasures", wanted)
    assert made.status_code == 202, made.content
    found: dict[str, Any] = json.loads(erased(made.json()["id"]).receipt)
    assert receipts.verify(found).holds
    return found


def names(team: Team) -> set[str]:
    return set(Session.objects.filter(team=team).values_list("external_id", flat=True))


def test_a_task_goes_with_its_board(program: Program):
    talk(program, "one", task=f"{MARK} task")
    program.ask("PUT", "/sessions/two", {"task": f"{MARK} task"})
    talk(program, "other", marked="heron", task="herons")
    assert Board.objects.filter(name=f"{MARK} task").exists()
    receipt = erase(program, "task", f"{MARK} task")
    assert names(program.team) == {"other"}
    assert not Board.objects.filter(name=f"{MARK} task").exists()
    assert Board.objects.filter(name="herons").exists()
    assert MARK not in json.dumps(receipt).lower()
    assert MARK.encode() not in stored_bytes()


def test_the_last_session_of_a_task_takes_an_empty_board_with_it(program: Program):
    talk(program, "one", task=f"{MARK} task")
    program.ask("PUT", "/sessions/two", {"task": f"{MARK} task"})
    talk(program, "other", marked="heron", task="herons")
    boards = Board.objects.filter(kind=Board.Kind.TASK).order_by("name")
    erase(program, "session", "two")
    assert [board.name for board in boards.all()] == ["herons", f"{MARK} task"]
    erase(program, "session", "one")
    assert [board.name for board in boards.all()] == ["herons"]
    assert MARK.encode() not in stored_bytes()


def test_a_subject_by_metadata(program: Program):
    for name, user in (("one", 4711), ("two", "4711"), ("three", "471"), ("four", None)):
        program.ask("PUT", f"/sessions/{name}", {"metadata": {"user": user} if user else {}})
    receipt = erase(program, "metadata", "user=4711")
    assert names(program.team) == {"three", "four"}
    assert "4711" not in json.dumps(receipt["rule"])


def test_a_subject_by_text(program: Program):
    """In originals that came just now, too; and the searches that quote it."""
    talk(program, "one")
    said = {"messages": [{"role": "user", "content": f"Write to {MARK.upper()} today."}]}
    program.post("/sessions/late/messages", said)
    talk(program, "other", marked="heron")
    SavedSearch.objects.create(team=program.team, name="birds", query=f"q={MARK}")
    erase(program, "text", MARK)
    assert names(program.team) == {"other"}
    assert not SavedSearch.objects.exists()
    assert MARK.encode() not in stored_bytes()


def test_another_teams_sessions_with_the_text_stay(program: Program, stranger: Program):
    talk(program, "one")
    talk(stranger, "one")
    erase(program, "text", MARK)
    assert (names(program.team), names(stranger.team)) == (set(), {"one"})
    assert Blob.objects.filter(team=stranger.team).exists()


@pytest.mark.parametrize(
    ("kind", "value"),
    [("session", "no"), ("task", "no"), ("metadata", "no"), ("text", "?!"), ("text", "absent"),
     ("member", "no"), ("team", "no")],
)  # fmt: skip
def test_nothing_of_this_name_is_said(program: Program, kind: str, value: str):
    said = eraser(program).ask("POST", "/erasures", {"kind": kind, "value": value})
    assert assert_problem(said, 422)["title"] == "Nothing to erase"
    assert not Erasure.objects.exists()


def test_a_members_data(program: Program):
    session = talk(program, "run")
    member(program.team, "olga", "owner")
    user = member(program.team, "mara", "editor")
    StepNote.objects.create(session=session, step=1, text="hers", author=user, author_name="mara")
    Key.objects.filter(pk=program.key.pk).update(owner=user)
    ours = StepNote.objects.exclude(author=user).count()
    receipt = erase(Program(program.team), "member", "mara")
    assert not User.objects.filter(username="mara").exists()
    assert (StepNote.objects.count(), Key.objects.filter(pk=program.key.pk).count()) == (ours, 0)
    assert (receipt["rows"]["step note"], receipt["rows"]["account"]) == (1, 1)
    assert not AuditEntry.objects.filter(named="mara").exists()
    assert names(program.team) == {"run"}


def test_a_member_of_another_team_keeps_the_account(program: Program, stranger: Program):
    member(program.team, "olga", "owner")
    user = member(program.team, "mara", "reviewer")
    Membership.objects.create(user=user, team=stranger.team, role="viewer")
    erase(program, "member", "mara")
    assert list(Membership.objects.filter(user=user).values_list("team__slug", flat=True)) == [
        "theirs"
    ]
    assert not Review.objects.filter(reviewer=user).exists()


def test_the_last_owner_stays(program: Program):
    member(program.team, "olga", "owner")
    said = eraser(program).ask("POST", "/erasures", {"kind": "member", "value": "olga"})
    assert_problem(said, 409)


def test_an_owner_who_is_the_last_by_then_stays_and_the_job_says_so(program: Program):
    for name in ("olga", "otto"):
        member(program.team, name, "owner")
    said = eraser(program).ask("POST", "/erasures", {"kind": "member", "value": "olga"})
    Membership.objects.get(team=program.team, user__username="otto").delete()
    with pytest.raises(AssertionError, match="Make another member an owner"):
        do_jobs()
    job = Erasure.objects.get(pk=said.json()["id"]).job
    assert (job.state, job.problem["title"]) == (Job.State.FAILED, "The last owner stays")
    assert Membership.objects.filter(team=program.team, user__username="olga").exists()


def test_a_whole_team(program: Program, stranger: Program):
    one_of_everything(program)
    Hold.objects.update(released="2026-01-01T00:00Z")
    talk(program, "more")
    talk(stranger, "theirs", marked="heron")
    Team.objects.filter(pk=program.team.pk).update(name=f"{MARK} works")
    erase(program, "team", "ours")
    left = Team.objects.get(pk=program.team.pk)
    assert (left.name, left.slug.startswith("erased-")) == ("Erased team", True)
    assert not Session.objects.filter(team=left).exists()
    assert not Blob.objects.filter(team=left).exists()
    assert AuditEntry.objects.filter(team=left, action="erasure.finished").exists()
    assert names(stranger.team) == {"theirs"}


# Holds


@pytest.mark.parametrize("kind", Hold.Kind.values)
def test_a_hold_forbids_it_until_it_is_released(program: Program, kind: str):
    session = talk(program, "run", task="ferry")
    value = {"session": str(session.pk), "task": "ferry", "team": ""}[kind]
    made = hold(program.team, Hold.Kind(kind), value, COMMAND, "a lawsuit")
    for wanted in ({"kind": "task", "value": "ferry"}, {"kind": "team", "value": "ours"}):
        said = assert_problem(eraser(program).ask("POST", "/erasures", wanted), 409)
        assert "a lawsuit" in said["detail"]
    assert_problem(eraser(program).ask("DELETE", "/sessions/run"), 409)
    assert names(program.team) == {"run"}
    assert release(made, COMMAND, "settled")
    erase(program, "session", "run")
    acts = AuditEntry.objects.filter(action__startswith="hold.").order_by("pk")
    assert [row.action for row in acts] == ["hold.made", "hold.released"]


def test_a_hold_on_a_session_includes_its_sub_agents(program: Program):
    session = talk(program, "run")
    program.ask("PUT", "/sessions/child", {"parent": "run"})
    hold(program.team, Hold.Kind.SESSION, str(session.pk), COMMAND, "a lawsuit")
    rule = ErasureRule(Kind.SESSION, "child")
    with pytest.raises(Held):
        begin(program.team, rule, sessions_of(program.team, rule), COMMAND)


# Again


def test_a_restored_backup_erases_again(program: Program, tmp_path: Path):
    """The rows are there again, and the store knows nothing of the erasure."""
    gone = talk(program, "run", task="ferry")
    receipt = erase(program, "session", "run")
    Erasure.objects.all().delete()
    back = Session.objects.create(pk=gone.pk, team=program.team, external_id="run")
    blob = Blob.of(program.team.pk, f"again {MARK}".encode())
    blob.save()
    message = back.messages.create(seq=1, digest="x", role="user", born=1, turn=1)
    back.blocks.create(
        message=message, index=0, position=0, born=1, type="text", kind="user", tokens=1, chars=1,
        bytes=1, sha=blob.sha, preview=MARK,
    )  # fmt: skip
    assert not receipts.verify(receipt).holds
    path = tmp_path / "erasures.jsonl"
    done = again(path)
    assert (done.receipts, done.sessions, done.unreadable) == (1, 1, 0)
    assert receipts.verify(receipt).holds
    assert MARK.encode() not in stored_bytes()
    assert_problem(program.ask("PUT", "/sessions/run", {}), 410)
    assert again(path).sessions == 0


def test_a_team_is_erased_again(program: Program, tmp_path: Path):
    erase(program, "team", "ours")
    Team.objects.filter(pk=program.team.pk).update(name="Ours", slug="ours")
    SavedSearch.objects.create(team=program.team, name="back", query="q=x")
    again(tmp_path / "erasures.jsonl")
    assert not SavedSearch.objects.exists()
    assert Team.objects.get(pk=program.team.pk).name == "Erased team"


def test_half_a_line_and_no_file_are_no_reason_to_stop(program: Program, tmp_path: Path):
    assert again(tmp_path / "none.jsonl").receipts == 0
    talk(program, "run")
    erase(program, "session", "run")
    path = tmp_path / "erasures.jsonl"
    path.write_text(path.read_text() + path.read_text()[:100])
    assert again(path)[:3] == (1, 0, 1)


def test_nothing_is_said_of_unknown_rules(program: Program):
    with pytest.raises(NothingToErase):
        sessions_of(program.team, ErasureRule(Kind.SESSION, "never"))
    do_jobs()
