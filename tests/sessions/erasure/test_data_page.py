"""Settings, Data: count, confirm, erase, verify, hold; for owners only."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError

from sessions.actions.erasure import receipts, rows
from sessions.management.commands.erase import Command
from sessions.models import Erasure, Hold, Session
from tests.sessions.erasure.erasing import MARK, do_jobs, eraser, talk
from tests.sessions.people import shown
from tests.sessions.programs import Program
from tests.sessions.web.world import browser_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("jobs_wait")]

DATA = "/settings/data/"


def test_count_confirm_erase_and_verify(program: Program):
    session = talk(program, "run")
    owner = browser_of(program.team)
    replay = owner.get(f"/sessions/{session.pk}/").content.decode()
    assert f"kind=session&amp;value={session.pk}" in replay
    counted = owner.get(DATA, {"kind": "session", "value": str(session.pk)})
    seen = " ".join(str(shown(counted).text).split())
    assert "This would erase 1 session with" in seen
    assert "that ContextLab makes by itself" in seen
    assert shown(counted).links["run"] == f"/sessions/{session.pk}/"
    given = {"kind": "session", "value": str(session.pk), "reason": "asked for"}
    refused = owner.post(f"{DATA}erase/", given | {"sure": "something else"})
    assert refused.status_code == 422
    assert not Erasure.objects.exists()
    assert owner.post(f"{DATA}erase/", given | {"sure": str(session.pk)}).status_code == 302
    assert owner.get(f"/sessions/{session.pk}/").status_code == 410
    do_jobs()
    made = Erasure.objects.get()
    assert (made.by, made.reason) == (f"owner of {program.team}", "asked for")
    said = owner.post(f"{DATA}{made.pk}/verify/", follow=True).content.decode()
    assert "The receipt holds." in said
    file = owner.get(f"{DATA}{made.pk}/receipt/")
    assert receipts.verify(receipts.parse(file.content.decode())).holds
    gone = owner.get(f"/sessions/{session.pk}/")
    assert gone.status_code == 410
    assert "was erased" in gone.content.decode()


def test_hold_and_release(program: Program):
    session = talk(program, "run")
    owner = browser_of(program.team)
    assert owner.post(f"{DATA}holds/", {"kind": "task", "reason": "x"}).status_code == 422
    given = {"kind": "session", "value": "run", "reason": "a lawsuit"}
    assert owner.post(f"{DATA}holds/", given).status_code == 302
    counted = owner.get(DATA, {"kind": "session", "value": str(session.pk)})
    seen = " ".join(str(shown(counted).text).split())
    assert "On legal hold" in seen and "a lawsuit" in seen and "Nothing was erased." not in seen
    assert "Without the hold, this would erase 1 session with" in seen
    assert 'name="sure"' not in counted.content.decode()
    asked = given | {"sure": str(session.pk), "value": str(session.pk)}
    assert owner.post(f"{DATA}erase/", asked).status_code == 409
    key = eraser(program)
    dry = key.ask("POST", "/erasures", given | {"dry_run": True}).json()
    assert (dry["sessions"], dry["first"]) == (1, ["run"]) and "a lawsuit" in dry["held"]
    made = Hold.objects.get()
    owner.post(f"{DATA}holds/{made.pk}/release/", {"reason": "settled"})
    assert key.ask("POST", "/erasures", given | {"dry_run": True}).json()["held"] is None


def test_of_many_sessions_the_first_are_named(program: Program):
    owner = browser_of(program.team)
    made = [Session(team=program.team, external_id=f"run-{one:02}", task="t") for one in range(23)]
    Session.objects.bulk_create(made)
    page = shown(owner.get(DATA, {"kind": "task", "value": "t"}))
    named = [one for one in page.links if one.startswith("run-")]
    assert len(named) == 20
    assert "and 3 more" in " ".join(page.text.split())


@pytest.mark.parametrize(
    ("name", "many", "said"),
    [
        ("entry", 2, "entries"),
        ("entry", 1, "entry"),
        ("accepted requests", 7, "accepted requests"),
        ("key", 2, "keys"),
        ("message", 2, "messages"),
    ],
)
def test_names_of_rows_have_their_plural(name: str, many: int, said: str):
    assert rows.said(name, many) == said


@pytest.mark.parametrize("role", ["editor", "reviewer", "viewer"])
def test_others_do_not_see_it(program: Program, role: str):
    session = talk(program, "run")
    browser = browser_of(program.team, role)
    assert browser.get(DATA).status_code == 403
    assert (
        "value=" + str(session.pk) not in browser.get(f"/sessions/{session.pk}/").content.decode()
    )


# The command


def run(**given: Any) -> None:
    options = dict.fromkeys(("session", "task", "metadata", "text", "member", "verify", "again",
                             "receipt"))  # fmt: skip
    flags = dict.fromkeys(("whole_team", "dry_run", "yes", "rewrite"), False)
    Command().handle(**(options | flags | {"reason": "", "team": None} | given))


def test_the_command_erases_and_verifies(
    program: Program, tmp_path: Any, capsys: pytest.CaptureFixture[str]
):
    talk(program, "run")
    file = tmp_path / "receipt.json"
    run(session="run", team="ours", dry_run=True)
    counted = capsys.readouterr().err
    assert "Sessions: run." in counted and "messages, " in counted
    assert Session.objects.exists()
    run(session="run", team="ours", yes=True, reason="asked for", receipt=file)
    assert not Session.objects.exists()
    assert MARK not in file.read_text().lower()
    run(verify=file)
    assert "holds: " in capsys.readouterr().out
    file.write_text(file.read_text().replace("asked for", "not asked for"))
    with pytest.raises(SystemExit):
        run(verify=file)
    with pytest.raises(CommandError, match="already exists"):
        run(task="x", team="ours", yes=True, receipt=file)


def test_the_command_wants_one_thing(program: Program):
    with pytest.raises(CommandError, match="Name one thing"):
        run(team="ours")
    with pytest.raises(CommandError, match="Name one thing"):
        run(team="ours", task="a", text="b")
