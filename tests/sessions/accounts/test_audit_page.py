"""The audit log: entries, filters, pagination and export."""

from __future__ import annotations

import json
import uuid
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from sessions.actions.accounts import audit, chain
from sessions.models import AuditEntry, Key, Session, Team
from sessions.views.web import paging
from tests.sessions.people import acts, browser, member, shown
from tests.sessions.programs import Program
from tests.sessions.web.world import reading

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="ours", name="Ours")


@pytest.fixture
def owner(team: Team) -> Client:
    return browser(member(team, "mara"))


def test_what_people_do_on_pages_is_written_down(owner: Client, team: Team):
    owner.post("/settings/keys/", {"name": "ci", "scope": "read"})
    owner.post(f"/settings/keys/{Key.objects.get().prefix}/revoke/")
    owner.post("/imports/", {"files": SimpleUploadedFile("a.jsonl", b"{}")})
    owner.post("/start/demo/")
    done = [(action, actor) for action, actor, _ in acts(team)]
    assert done == [
        ("key.made", "mara"), ("key.revoked", "mara"), ("import.asked", "mara"),
        ("demo.loaded", "mara"),
    ]  # fmt: skip
    entry = AuditEntry.objects.filter(action="key.made").get()
    assert (entry.via, entry.ip, entry.named) == ("person", "127.0.0.1", "ci")
    assert entry.detail == {"prefix": Key.objects.get().prefix, "scopes": ["read"]}


def test_what_programs_do_is_written_down_by_the_name_of_their_key(team: Team):
    program = Program(team)
    Key.objects.update(name="night run")
    about = {"model": "claude-sonnet-4-5", "window": 40_000, "policy": "offload-first"}
    program.ask("PUT", "/sessions/run", about)
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "go"}]})
    for call in ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]:
        program.get("/sessions/run/context")
        program.post("/sessions/run/messages", {"messages": reading(call)})
    program.get("/sessions/run/context")
    program.post("/sessions/run/pins", {"seq": 1})
    program.post("/sessions/run/pins", {"seq": 1})
    program.ask("DELETE", "/sessions/run/pins/1")
    program.post("/sessions/run/revisions/1/undo", {})
    assert acts(team)[1:] == [
        ("pin.set", "night run", "run"), ("pin.removed", "night run", "run"),
        ("revision.undone", "night run", "run"),
    ]  # fmt: skip
    assert AuditEntry.objects.filter(action="revision.undone").get().detail == {"number": 1}
    assert not AuditEntry.objects.exclude(action="key.made").exclude(via="key").exists()


def test_commands_are_written_down(tmp_path: Path):
    out = StringIO()
    log = tmp_path / "a.json"
    log.write_text(json.dumps([{"role": "user", "content": "hello there"}] * 2))
    call_command("import_logs", str(log), stdout=out, stderr=out)
    session = Session.objects.get()
    call_command("export", str(session.pk), stdout=out, stderr=out)
    team = session.team
    actions = [(action, actor) for action, actor, _ in acts(team)]
    assert actions == [("import.asked", "command line"), ("export.made", "command line")]
    assert "hello" not in str(list(AuditEntry.objects.values()))


def many(team: Team, count: int) -> None:
    for number in range(count):
        audit.note(team, audit.COMMAND, f"thing.{'odd' if number % 2 else 'even'}", f"n{number}")


def test_the_log_is_read_newest_first_in_pages(owner: Client, team: Team):
    many(team, paging.PAGE + 3)
    first = shown(owner.get("/settings/audit/"))
    assert (f"n{paging.PAGE + 2}" in first.text, ">n2<" in first.html) == (True, False)
    second = shown(owner.get("/settings/audit/" + first.links["Older ›"]))
    assert ">n2<" in second.html
    assert ">n3<" not in second.html
    back = shown(owner.get("/settings/audit/" + second.links["‹ Newer"]))
    assert ">n3<" in back.html
    for nonsense in ("o~1~2", "o~2026-01-01T00:00:00Z~" + "f" * 32, "x", "o~~", "n~T~1"):
        assert owner.get("/settings/audit/", {"cursor": nonsense}).status_code == 200


def test_the_log_is_narrowed(owner: Client, team: Team):
    many(team, 4)
    page = shown(owner.get("/settings/audit/?action=thing.odd&actor=command+line"))
    assert (">n1<" in page.html, ">n0<" in page.html) == (True, False)
    none = shown(owner.get("/settings/audit/?action=thing.odd&actor=mara"))
    assert "Nothing matches" in none.text
    assert owner.get("/settings/audit/?action=%00").status_code == 200


def test_a_log_without_entries_says_so(owner: Client):
    assert "Nothing yet" in shown(owner.get("/settings/audit/")).text


def test_the_narrowed_log_is_taken_along_as_lines_of_json(owner: Client, team: Team):
    many(team, 4)
    audit.note(Team.objects.create(slug="theirs", name="Theirs"), audit.COMMAND, "thing.odd", "no")
    answer = owner.post("/settings/audit/export/", {"action": "thing.odd"})
    assert answer["Content-Disposition"].startswith('attachment; filename="audit-ours-')
    lines = [json.loads(line) for line in answer.content.decode().splitlines()]
    assert [line["named"] for line in lines] == ["n1", "n3"]
    assert lines[0] == chain.line_of(AuditEntry.objects.get(named="n1"))
    assert acts(team)[-1] == ("export.made", "mara", "audit log")


def test_a_refused_act_is_written_down_once_in_a_while(team: Team):
    viewer = browser(member(team, "jo", "viewer"))
    for _ in range(2):
        assert viewer.post("/settings/keys/", {"name": "ci"}).status_code == 403
    assert viewer.get("/settings/audit/").status_code == 403
    assert acts(team) == [
        ("access.refused", "jo", "POST keys"), ("access.refused", "jo", "GET audit"),
    ]  # fmt: skip
    assert AuditEntry.objects.latest("number").detail == {"right": "audit"}


def test_a_key_without_the_scope_is_written_down(team: Team):
    reader = Program(team, ("read",))
    assert reader.ask("PUT", "/sessions/run", {}).status_code == 403
    assert acts(team)[-1] == ("access.refused", f"clk_{reader.key.prefix}", "PUT api:session")


def test_a_session_of_another_team_and_a_missing_one_are_written_down_alike(team: Team):
    other = Program(Team.objects.create(slug="theirs", name="Theirs"))
    other.ask("PUT", "/sessions/run", {})
    before = acts(other.team)
    foreign, missing = Session.objects.get().pk, uuid.uuid4()
    client = browser(member(team, "jo", "viewer"))
    for asked in (foreign, missing):
        assert client.get(f"/sessions/{asked}/").status_code == 404
        assert client.get(f"/api/v1/sessions/{asked}").status_code == 404
    assert acts(team) == [
        ("access.refused", "jo", str(foreign)), ("access.refused", "jo", str(missing)),
    ]  # fmt: skip
    assert acts(other.team) == before


def test_a_replay_is_given_only_to_who_may_still_do_it(team: Team):
    user = member(team, "mara", "editor")
    program = Program(team)
    program.ask("PUT", "/sessions/run", {})
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "go"}]})
    headers = {"Idempotency-Key": "once"}

    def ask(client: Client) -> Any:
        client.cookies["contextlab_csrf"] = "a" * 32
        return client.post(
            "/api/v1/sessions/run/pins", {"seq": 1}, "application/json",
            headers={"X-CSRFToken": "a" * 32, **headers},
        )  # fmt: skip

    first = browser(user)
    assert ask(first).status_code == 201
    assert ask(first)["Idempotent-Replay"] == "true"
    other = ask(browser(member(team, "jo", "editor")))
    assert other.status_code == 422, "it is another's request"
    user.memberships.update(role="viewer")
    assert ask(first).status_code == 403
    user.memberships.all().delete()
    assert ask(first).status_code == 404


def test_details_are_shown_in_words(owner: Client, team: Team):
    detail = {"before": None, "made": False, "only": [], "found": {"new_side": True}}
    audit.note(team, audit.COMMAND, "rollout.proposed", "careful@1", **detail)
    text = shown(owner.get("/settings/audit/")).text
    for said in ("before –", "made no", "only –", "found new side yes"):
        assert said in text
