"""Content shown masked: no answer to a member or to a key that only reads has a secret."""

from __future__ import annotations

import base64
import gzip
import re
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from compaction.redaction.team_rules import TeamRule
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.live import folds
from sessions.actions.masking import rules
from sessions.api.replay.following import FollowedRun, news_of
from sessions.models import AuditEntry, Block, Message, Replacement, Run, Session
from sessions.models.web.shown import ShownChars, ShownText
from tests.sessions.pages import page_of
from tests.sessions.programs import Program
from tests.sessions.search.searched import reindex
from tests.sessions.web import world as worlds
from tests.sessions.web.addresses import BODIES, PRIVATE
from tests.sessions.web.world import browser_of, by_browser, by_program, each, one_of_everything

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]

KEY = "sk-ant-api03-" + "Ab3dEf9h" * 10
OTHER_KEY = "sk-ant-api03-" + "Cd4eFg8j" * 10
"""One that nothing holds."""
NAME = "Ines Okafor"
RULE = TeamRule("PERSON", "words", NAME, "[PERSON]")
PLANTED = f"the key of {NAME} is {KEY} "
FIRST = {"messages": [{"role": "user", "content": f"{PLANTED}and the port is 80"}]}

OWN = {"api/v1/masking", "api/v1/masking-rules/<uuidstr:masking_rule_id>"}
"""These show owners the rules, which name what they mask."""

SHOWN = {
    "api/v1/blobs/<sha>", "api/v1/sessions/<path:session_id>/compare",
    "api/v1/sessions/<path:session_id>/content/<ref>", "api/v1/sessions/<path:session_id>/context",
    "api/v1/sessions/<path:session_id>/entry", "api/v1/sessions/<path:session_id>/manifest",
    "api/v1/sessions/<path:session_id>/messages", "api/v1/sessions/<path:session_id>/notes",
    "api/v1/sessions/<path:session_id>/offloads/<file>",
    "api/v1/sessions/<path:session_id>/previews", "api/v1/sessions/<path:session_id>/shares",
    "api/v1/sessions/<path:session_id>/step-notes", "api/v1/sessions/<path:session_id>/texts",
    "memory/boards/<int:board_id>/", "review/items/<uuid:item_id>/", "sessions/<uuid:session_id>/",
    "sessions/<uuid:session_id>/revisions/<str:run>/<int:number>/", "live/",
}  # fmt: skip
"""Routes that show the secrets where content is shown as stored: the walk would find them."""

MORE = (
    "/search/?q=line", "/api/v1/search?q=line", "{api}/search?q=line",
    "/sessions/?q=port", "/api/v1/sessions?q=port", "/memory/?q=port",
    "/sessions/{id}/why/?text=line+1+of+t3", "{api}/why?text=line+1+of+t3",
    "{api}/diff?a=1&b=5&run=managed", "{api}/manifest?packed=true", "{api}/events?run=managed",
    "{api}/recitation?run=managed&step=3", "{api}/sources?run=managed",
    "{api}/context?format=openai", "{api}/context?format=blocks", "{api}/content/3?grep=key",
    "{api}/export?format=html&run=managed", "{api}/export",
)  # fmt: skip
"""Reads with parameters, and in other forms."""


def reading(call: str) -> list[dict[str, Any]]:
    """A step whose call and result hold the secrets."""
    given = {"file_path": f"{call}.py", "note": PLANTED}
    use = {"type": "tool_use", "id": call, "name": "Read", "input": given}
    lines = [f"line {number} of {call}" for number in range(300)]
    text = "\n".join([PLANTED, *lines, PLANTED])
    failed = {"is_error": True} if call == "t8" else {}
    result = {"type": "tool_result", "tool_use_id": call, "content": text, **failed}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def plant() -> None:
    """Put the secrets into every column of content, of rows that have any."""
    for model in set(apps.get_models()) - {Block, Message, Replacement}:  # these never change
        for field in model._meta.concrete_fields:
            if isinstance(field, ShownText | ShownChars):
                for row in model._default_manager.all():
                    text = f"{PLANTED}{getattr(row, field.name)}"[: field.max_length]
                    model._default_manager.filter(pk=row.pk).update(**{field.name: text})
    Session.objects.update(meta={"person": PLANTED})


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch, program: Program) -> dict[str, Any]:
    """One object of every kind, made of content with secrets, in a team that shows it masked."""
    monkeypatch.setattr(worlds, "reading", reading)
    monkeypatch.setitem(BODIES, "messages", FIRST)
    folds.forget_all()
    made = one_of_everything(program)
    program.post("/sessions/run/shares", {"summary": f"We know of {NAME}"})
    rules.add(program.team, RULE, COMMAND)
    plant()
    reindex(program.team)
    rules.show_masked(program.team, True, COMMAND)
    return made


def text_of(answer: Any) -> str:
    """All that an answer says, unpacked."""
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if answer.headers.get("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    text = data.decode("utf-8", "replace")
    for packed in re.findall(r"H4sI[A-Za-z0-9+/=]{40,}", text):
        text += gzip.decompress(base64.b64decode(packed)).decode()
    return text


def shows(answer: Any) -> bool:
    """Whether an answer has a secret, or so much of the key that no rule would find the rest."""
    text = text_of(answer)
    return NAME in text or KEY[:24] in text


def more(client: Client, ids: dict[str, Any]) -> set[str]:
    """Those of MORE that show a secret."""
    api = f"/api/v1/sessions/{ids['session_id']}"
    asked = {one: client.get(one.format(api=api, id=ids["session_id"])) for one in MORE}
    assert {answer.status_code for answer in asked.values()} == {200}
    return {one for one, answer in asked.items() if shows(answer)}


def test_no_answer_to_a_reader_has_a_secret(
    planted: dict[str, Any], program: Program, reader: Program
):
    people = [browser_of(program.team, role) for role in ("owner", "editor", "viewer")]
    assert more(people[1], planted) == set()
    found = set()
    for address in each([one for one in PRIVATE if one.takes and one.route not in OWN]):
        answers = [by_browser(client, address, planted) for client in people]
        if address.is_api:
            answers.append(by_program(reader, address, planted))
        found |= {(address.method, address.route) for answer in answers if shows(answer)}
    assert found == set()


def test_the_walk_finds_what_is_shown_as_stored(planted: dict[str, Any], program: Program):
    rules.show_masked(program.team, False, COMMAND)
    viewer = browser_of(program.team, "viewer")
    reads = [one for one in PRIVATE if one.method == "GET"]
    found = {one.route for one in each(reads) if shows(by_browser(viewer, one, planted))}
    assert found >= SHOWN
    assert more(viewer, planted) >= {*MORE[:6], "{api}/context?format=blocks"}


def test_agents_get_back_what_they_sent(planted: dict[str, Any], program: Program, reader: Program):
    path = "/sessions/run/context?format=blocks"
    for _ in range(2):  # a reader's look leaves no mask in what the process keeps for the agent
        assert shows(program.ask("GET", path))
        assert not shows(reader.ask("GET", path))
    assert shows(program.ask("GET", "/sessions/run/content/3"))
    assert not shows(reader.ask("GET", "/sessions/run/content/3"))
    assert shows(program.ask("GET", "/sessions/run/export?masked=false"))


def test_pages_that_follow_a_session_are_sent_no_secret(planted: dict[str, Any], program: Program):
    run = Run.objects.get(session=planted["session_id"], origin="managed")
    whole = program.get("/sessions/run/manifest?run=managed")
    assert NAME in whole["session"]["title"]
    follow = FollowedRun(str(planted["session_id"]), "managed", whole["next"])
    program.post("/sessions/run/messages", {"messages": reading("t10")})
    news = news_of(follow)
    assert news is not None
    assert run.pk.hex in news.state
    assert NAME not in news.json.decode()
    assert KEY[:24] not in news.json.decode()


@pytest.mark.parametrize("asked", [KEY, KEY[:30], NAME, "Ines"])
def test_a_search_does_not_tell_whether_a_secret_is_there(
    asked: str, planted: dict[str, Any], program: Program
):
    viewer = browser_of(program.team, "viewer")
    other = OTHER_KEY[: len(asked)] if asked in KEY else "Orla Akintan"[: len(asked)]
    paths = (
        *("/search/", "/sessions/", "/memory/", "/api/v1/search", "/api/v1/sessions"),
        f"/sessions/{planted['session_id']}/compare/",
        f"/api/v1/sessions/{planted['session_id']}/search",
    )  # fmt: skip
    for path in paths:
        answers = [_answer(viewer, path, "q", words) for words in (asked, other)]
        assert answers[0] == answers[1], path
    rest = [_answer(viewer, "/search/", "q", words, after="9") for words in (asked, other)]
    assert rest[0] == rest[1], "nor how many sessions were searched"
    page = f"/sessions/{planted['session_id']}/why/"
    assert _answer(viewer, page, "text", asked) == _answer(viewer, page, "text", other)
    api = f"/api/v1/sessions/{planted['session_id']}/why"
    assert _answer(viewer, api, "text", asked) == _answer(viewer, api, "text", other)


def _answer(client: Client, path: str, name: str, words: str, **more: str) -> tuple[int, str]:
    """An answer without the words asked for, nor what changes with each answer."""
    answer = client.get(path, {name: words, **more})
    text = text_of(answer)
    for word in words.split():
        text = re.sub(re.escape(word[:14]) + r"[\w-]*…?", "?", text)
    for changing in (r"[A-Za-z0-9]{64}", r"req_\w+", r"\d+ s ago|just now"):
        text = re.sub(changing, "", text)
    return answer.status_code, text


@pytest.mark.parametrize("role", ["owner", "editor", "reviewer", "viewer"])
def test_exports_are_masked_except_an_owners_lines(
    role: str, planted: dict[str, Any], program: Program
):
    client = browser_of(program.team, role)
    page = f"/sessions/{planted['session_id']}/export/"
    api = f"/api/v1/sessions/{planted['session_id']}/export"
    lines, html = (client.get(f"{api}?masked=false&format={form}") for form in ("jsonl", "html"))
    posted = client.post(page, {"format": "jsonl"})
    if role == "owner":
        assert shows(lines)
        assert shows(posted)
        assert 'type="checkbox" name="masked"' in client.get(page).content.decode()
    else:
        assert (lines.status_code, posted.status_code) == (403, 403)
        assert not shows(posted)
        assert 'type="checkbox" name="masked"' not in client.get(page).content.decode()
    assert html.status_code == 403
    assert not shows(client.get(f"{api}?format=html"))


def entry_of(client: Client, ids: dict[str, Any], i: int = 0) -> dict[str, Any]:
    answer = client.get(f"/api/v1/sessions/{ids['session_id']}/entry?run=managed&i={i}")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def reveal(client: Client, ids: dict[str, Any], sha: str, i: int = 0) -> Any:
    body = {"run": "managed", "i": i, "sha": sha}
    address = f"/api/v1/sessions/{ids['session_id']}/reveal"
    return client.post(address, body, content_type="application/json")


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_one_block_is_revealed_and_the_log_says_so(
    role: str, planted: dict[str, Any], program: Program
):
    client = browser_of(program.team, role)
    entry = entry_of(client, planted)
    assert (entry["masked"], NAME in entry["text"]) == (True, False)
    answer = reveal(client, planted, entry["sha"])
    assert answer["Cache-Control"] == "no-store"
    assert answer.json()["text"] == FIRST["messages"][0]["content"]
    assert not answer.json()["masked"]
    noted = AuditEntry.objects.get(team=program.team, action="content.revealed")
    assert (noted.actor, noted.named) == (f"{role} of {program.team}", "run")
    assert noted.detail == {"block": "1", "run": "offload-first"}
    assert entry_of(client, planted) == entry, "nothing stays revealed"


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_others_reveal_nothing(role: str, planted: dict[str, Any], program: Program):
    client = browser_of(program.team, role)
    answer = reveal(client, planted, entry_of(client, planted)["sha"])
    assert (answer.status_code, shows(answer)) == (403, False)
    assert not AuditEntry.objects.filter(action="content.revealed").exists()
    assert "reveal_url" not in client.get(f"/sessions/{planted['session_id']}/").content.decode()


def test_what_cannot_be_revealed(planted: dict[str, Any], program: Program):
    owner = browser_of(program.team, "owner")
    sha = entry_of(owner, planted)["sha"]
    assert reveal(owner, planted, "0" * 64).status_code == 409
    assert reveal(owner, planted, sha, i=10**6).status_code == 404
    body = {"run": "managed", "i": 0, "sha": sha}
    assert program.ask("POST", "/sessions/run/reveal", body).status_code == 403
    rules.show_masked(program.team, False, COMMAND)
    assert reveal(owner, planted, sha).status_code == 409
    assert not AuditEntry.objects.filter(action="content.revealed").exists()


def test_owners_choose_what_is_shown(program: Program):
    owner = browser_of(program.team, "owner")
    said = "A key that may write reads what is stored."
    assert said not in page_of(owner, "/settings/keys/").text
    on = {"what": "shown", "on": "yes"}
    assert owner.post("/settings/masking/switch/", on).status_code == 302
    assert said in page_of(owner, "/settings/keys/").text
    key = Program(program.team, ("read", "erase"))
    assert key.get("/masking")["show_masked"]
    assert not key.ask("PUT", "/masking", {"show_masked": False}).json()["show_masked"]
    assert key.ask("PUT", "/masking", {"show_masked": False}).status_code == 200, "no change"
    noted = AuditEntry.objects.filter(action="masking.shown").order_by("number")
    assert [one.detail for one in noted] == [{"on": True}, {"on": False}]
    editor = browser_of(program.team, "editor")
    assert editor.post("/settings/masking/switch/", on).status_code == 403


def test_a_session_says_what_was_masked_before_it_was_stored(program: Program):
    rules.mask_incoming(program.team, True, COMMAND)
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": KEY}]})
    session = Session.objects.get(team=program.team)
    page = page_of(browser_of(program.team, "viewer"), f"/sessions/{session.pk}/")
    assert "Masked before it was stored: 1 API_KEY" in page.text


def test_a_member_of_two_teams_sees_the_blocks_of_the_other_as_stored(
    planted: dict[str, Any], stranger: Program
):
    stranger.post("/sessions/theirs/messages", FIRST)
    client = browser_of(stranger.team, "viewer")
    answer = client.get("/api/v1/sessions/theirs/texts?at=0")
    assert shows(answer)
