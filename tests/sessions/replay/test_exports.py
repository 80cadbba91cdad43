"""Exports over HTTP: the same session after an import, and a replay that holds no secret."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.imports.imports import run_import
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import folds
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.api.replay import exports, replay_file
from sessions.models import AuditEntry, Import, ReviewItem, Session, Team
from tests.sessions.imports.test_exports_restored import SECRET, compared, managed, recorded
from tests.sessions.made import count, reads, result, session, user
from tests.sessions.people import browser, member
from tests.sessions.programs import Program, assert_problem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def body(response: Any) -> bytes:
    assert response.status_code == 200, response.content
    return b"".join(response.streaming_content)


def lines_of(program: Program, name: str) -> list[dict[str, Any]]:
    data = body(program.ask("GET", f"/sessions/{name}/export?masked=false"))
    return [json.loads(line) for line in data.splitlines()]


def carried(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What an upload brings: without reviews, and without proof of who wrote notes."""
    left = [line for line in compared(lines) if line["is"] not in ("review_item", "review")]
    for line in left:
        if line["is"] == "step_note":
            line["author_name"] = line["author_name"].removesuffix(" (imported)")
    return left


@pytest.mark.store
@pytest.mark.parametrize("made", [recorded, managed])
def test_an_import_of_an_export_is_the_same_session(made: Callable[[Team], Session]) -> None:
    found = made(local_team())
    here, there = Program(found.team), Program(Team.objects.create(slug="there", name="there"))
    before = lines_of(here, found.external_id)
    data = b"".join(json.dumps(line).encode() + b"\n" for line in before)
    asked = there.ask(
        "POST", "/imports?name=x.jsonl", data, content_type="application/octet-stream"
    )
    upload = Import.objects.get(pk=asked.json()["import"])
    run_import(upload, count, lambda *_: None)
    assert upload.files.get().state == "new", upload.files.get().problems
    again = lines_of(there, found.external_id)
    assert sum(line["is"] == "session" for line in again) == found.children.count() + 1
    assert carried(again) == carried(before)


def test_what_others_still_review_stays_theirs() -> None:
    found = recorded(local_team())
    program = Program(found.team, ("read",))
    assert "review" in {line["is"] for line in lines_of(program, "s1")}
    ReviewItem.objects.update(finished=None)
    assert "review" not in {line["is"] for line in lines_of(program, "s1")}


def answers_in(page: str) -> dict[str, Any]:
    """What the page of a file can ask for, by name."""
    [data] = re.findall(r'<script type="text/plain" id="replay-data">([^<]*)</script>', page)
    lines = gzip.decompress(base64.b64decode(data)).decode().splitlines()
    return {name: json.loads(value) for name, value in (line.split("\t", 1) for line in lines)}


def test_the_file_answers_as_the_server_does() -> None:
    found = managed(local_team())
    program = Program(found.team)
    given = "?format=html&masked=false&run=managed"
    held = answers_in(body(program.ask("GET", f"/sessions/run/export{given}")).decode())
    assert held["props"]["default_run"] == "managed"
    for run in ("recorded", "managed"):
        ask = f"?run={run}"
        manifest = program.get(f"/sessions/run/manifest{ask}&packed=true")
        assert held[f"manifest {run}"]["entries"] == manifest["entries"]
        assert held[f"sources {run}"] == program.get(f"/sessions/run/sources{ask}")
        count = manifest["entries"]["count"]
        rows = program.get(f"/sessions/run/previews{ask}&to={count}")["rows"]
        assert held[f"previews {run}"] == rows
        for i in range(count):
            wanted = program.get(f"/sessions/run/entry{ask}&i={i}")
            outline = held[f"entry {run} {i}"]
            for version in outline["versions"]:
                version["text"] = held[f"content {version['sha']}"]["text"]
            assert outline | held[f"content {outline['sha']}"] == wanted
    assert any(len(one["versions"]) == 2 for n, one in held.items() if n.startswith("entry m"))


@pytest.mark.fault("K8")
def test_a_masked_file_holds_no_secret_in_any_form() -> None:
    long = f"{'word ' * 23}{SECRET}"  # a preview cuts it
    talk = session(
        user(f"Use {SECRET}."),
        user(long),
        reads("c1", "t1", f"src/{SECRET}.py"),
        result("t1", long),
    )
    talk.title = f"Key {SECRET}"
    found = append(local_team(), talk, count, source="test").session
    measure(found)
    simulate_session(found, "offload-first")
    program = Program(found.team)
    page = body(program.ask("GET", "/sessions/s1/export?format=html&run=offload-first")).decode()
    held = json.dumps(answers_in(page))
    assert SECRET[:24] not in page + held
    assert "[API_KEY_1]" in held and ">masked</span>" in page
    plain = body(program.ask("GET", "/sessions/s1/export?format=html&masked=false")).decode()
    assert SECRET in json.dumps(answers_in(plain)) and ">not masked</span>" in plain


def test_texts_cannot_leave_their_place() -> None:
    talk = session(user("</script><script>alert(1)</script>\u2028<!-- \ud800"))
    talk.title = "</title><script>alert(2)</script>"
    append(local_team(), talk, count, source="test")
    page = body(Program(local_team()).ask("GET", "/sessions/s1/export?format=html")).decode()
    assert page.count("<script") == page.count("</script>") == 2
    assert "<script>" not in page and "&lt;script&gt;alert(2)" in page
    [policy] = re.findall(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy


def test_only_the_team_exports_and_the_log_says_so() -> None:
    recorded(local_team())
    other = Program(Team.objects.create(slug="there", name="there"))
    assert_problem(other.ask("GET", "/sessions/s1/export"), 404)
    program = Program(local_team(), ("read",))
    assert_problem(program.ask("GET", "/sessions/s1/export?format=html&run=none"), 404)
    assert_problem(program.ask("GET", "/sessions/s1/export?format=zip"), 422)
    assert not AuditEntry.objects.filter(action="export.made").exists()
    answer = program.ask("GET", "/sessions/s1/export")
    said = answer["Content-Disposition"]
    body(answer)
    assert re.fullmatch(r'attachment; filename="session-s1-[\d-]{10}-masked.jsonl"', said)
    [entry] = AuditEntry.objects.filter(action="export.made")
    assert (entry.named, entry.detail) == ("s1", {"format": "jsonl", "masked": True})


def test_the_page_sends_the_file_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = append(local_team(), session(user("Hi.")), count, source="test").session
    client = browser(member(found.team, "mara", "viewer"))
    address = f"/sessions/{found.pk}/export/"
    assert "Mask secrets" in client.get(address).content.decode()
    sent = client.post(address, {"format": "html", "run": "recorded", "masked": "on"})
    assert "masked.html" in sent["Content-Disposition"] and body(sent).startswith(b"<!DOCTYPE")
    monkeypatch.setattr(replay_file, "LARGEST", 10)
    refused = client.post(address, {"format": "html"})
    assert (refused.status_code, "too much for one page" in refused.content.decode()) == (413, True)


def test_a_replay_waits_until_the_pages_are_built(settings: Any, tmp_path: Path) -> None:
    append(local_team(), session(user("Hi.")), count, source="test")
    settings.BUILT_PAGES = tmp_path
    refused = Program(local_team()).ask("GET", "/sessions/s1/export?format=html")
    assert "npm --prefix frontend run build" in assert_problem(refused, 503)["detail"]
    assert refused["Retry-After"] == "60"


def test_no_more_at_once_than_there_are_places(monkeypatch: pytest.MonkeyPatch) -> None:
    append(local_team(), session(user("Hi.")), count, source="test")
    monkeypatch.setattr(exports, "WAIT_SECONDS", 0)
    team = local_team().pk
    for _ in range(exports.PROCESSES - 1):
        exports._places.take(team, 0)
    program = Program(local_team())
    refused = program.ask("GET", "/sessions/s1/export")
    assert_problem(refused, 503)
    assert refused["Retry-After"] == "5"
    exports._places.put(team, None)
    body(program.ask("GET", "/sessions/s1/export"))
    for _ in range(exports.PROCESSES - 2):
        exports._places.put(team, None)
    body(program.ask("GET", "/sessions/s1/export"))
