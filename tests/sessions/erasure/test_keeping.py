"""Retention and holds by the API and on the command line."""

from __future__ import annotations

from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from sessions.models import AuditEntry, Hold, Retention, Session
from tests.sessions.erasure.erasing import eraser, talk
from tests.sessions.erasure.test_retention import aged
from tests.sessions.programs import Program, assert_problem

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]


def said(*command: Any) -> str:
    """What a command prints about the program's team."""
    out = StringIO()
    call_command(*command, "--team", "ours", stdout=out)
    return out.getvalue()


def test_retention_is_counted_then_set(program: Program) -> None:
    aged(program, "old", 100)
    wanted = {"content_days": None, "session_days": 90}
    assert_problem(program.ask("PUT", "/retention", wanted), 403)
    key = eraser(program)
    counted = key.ask("PUT", "/retention", wanted | {"dry_run": True}).json()
    nothing = {"content": 0, "held": 0, "at_work": 0}
    assert counted == {"sessions": 1, "bytes": counted["bytes"]} | nothing and counted["bytes"] > 0
    Session.objects.update(changed=timezone.now())
    again = key.ask("PUT", "/retention", wanted | {"dry_run": True}).json()
    assert again == counted | {"at_work": 1}
    assert key.get("/retention") == {"content_days": None, "session_days": None}
    assert key.ask("PUT", "/retention", wanted).json() == wanted
    assert key.get("/retention") == wanted
    assert AuditEntry.objects.filter(action="retention.changed").count() == 1
    assert Session.objects.filter(external_id="old", erasing=None).exists()


@pytest.mark.parametrize("days", [0, -1, 36_501, "90", 1.5])
def test_days_are_whole_and_positive(program: Program, days: object) -> None:
    wanted = {"content_days": days, "session_days": None}
    assert_problem(eraser(program).ask("PUT", "/retention", wanted), 422)
    assert not Retention.objects.exists()


def test_retention_on_the_command_line(program: Program) -> None:
    aged(program, "old", 100)
    assert said("retention") == "Content: forever\nSessions: forever\n"
    counted = said("retention", "--content", "90", "--dry-run")
    assert counted.endswith("Content: forever; proposed: 90 days\nSessions: forever\n")
    assert "older than that: the content of 1 sessions and 0 whole" in counted
    assert "at work" not in counted
    Session.objects.update(changed=timezone.now())
    counted = said("retention", "--content", "90", "--dry-run")
    assert "1 of them still at work (by an import or agent in the last 30 minutes): er" in counted
    assert not Retention.objects.exists()
    assert said("retention", "--content", "90").endswith("Content: 90 days\nSessions: forever\n")
    assert said("retention", "--sessions", "365").endswith("90 days\nSessions: 365 days\n")
    assert said("retention", "--content", "forever").endswith("forever\nSessions: 365 days\n")
    with pytest.raises(CommandError, match="'0' is no number of days"):
        said("retention", "--content", "0")


def test_a_hold_by_the_api(program: Program) -> None:
    session, key = talk(program, "run"), eraser(program)
    wanted = {"kind": "session", "value": "run", "reason": "a lawsuit"}
    assert_problem(program.ask("POST", "/holds", wanted), 403)
    made = key.ask("POST", "/holds", wanted)
    assert (made.status_code, made.json()["value"]) == (201, str(session.pk))
    assert key.get("/holds") == {"holds": [made.json()]}
    assert_problem(key.ask("DELETE", "/sessions/run"), 409)
    release = f"/holds/{made.json()['id']}/release"
    assert key.ask("POST", release, {"reason": "settled"}).status_code == 200
    assert_problem(key.ask("POST", release, {"reason": "settled"}), 409)
    assert key.get("/holds") == {"holds": []}
    assert key.ask("DELETE", "/sessions/run").status_code == 202


@pytest.mark.parametrize(
    "wanted",
    [
        {"kind": "session", "value": "gone", "reason": "a lawsuit"},
        {"kind": "task", "reason": "a lawsuit"},
        {"kind": "team", "reason": ""},
        {"kind": "team"},
        {"kind": "subject", "value": "x", "reason": "a lawsuit"},
    ],
)
def test_what_cannot_be_held(program: Program, wanted: dict[str, str]) -> None:
    assert_problem(eraser(program).ask("POST", "/holds", wanted), 422)
    assert not Hold.objects.exists()


def test_holds_on_the_command_line(program: Program) -> None:
    session = talk(program, "run")
    hold_id = said("hold", "add", "run", "--reason", "a lawsuit").removeprefix("On hold: ").strip()
    said("hold", "add", "--task", "ferry", "--reason", "another")
    said("hold", "add", "--whole-team", "--reason", "all")
    lines = said("hold", "list").splitlines()
    assert [line.split()[1] for line in lines] == ["session", "task", "team"]
    assert str(session.pk) in lines[0] and lines[0].endswith(": a lawsuit")
    assert said("hold", "release", hold_id, "--reason", "settled") == "Released.\n"
    with pytest.raises(CommandError, match="There is no hold"):
        said("hold", "release", hold_id, "--reason", "settled")
    with pytest.raises(CommandError, match="Name a session, --task or --whole-team"):
        said("hold", "add", "run", "--task", "ferry", "--reason", "both")
    assert len(said("hold", "list").splitlines()) == 2


@pytest.mark.parametrize(
    ("method", "address", "body", "field"),
    [
        ("POST", "/holds", {"kind": "task", "value": "a\0b", "reason": "c"}, "/value"),
        ("POST", "/holds", {"kind": "team", "reason": "a\0b"}, "/reason"),
        ("POST", "/erasures", {"kind": "metadata", "value": "a\0=b", "dry_run": True}, "/value"),
        ("POST", "/erasures", {"kind": "task", "value": "a", "reason": "\0"}, "/reason"),
        ("POST", f"/holds/{UUID(int=4711)}/release", {"reason": "a\0b"}, "/reason"),
        ("DELETE", "/sessions/a?reason=%00", None, "?reason"),
        ("GET", "/dashboard?agent=%00", None, "?agent"),
    ],
)
def test_text_that_cannot_be_stored_is_refused(
    program: Program, method: str, address: str, body: Any, field: str
) -> None:
    said = assert_problem(eraser(program).ask(method, address, body), 422)
    assert [(one["pointer"], "U+0000" in one["detail"]) for one in said["errors"]] == [
        (field, True)
    ]
