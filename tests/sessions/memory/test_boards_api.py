"""Boards, shares, subscriptions and memory as programs ask for them."""

from __future__ import annotations

import pytest

from sessions.actions.memory.gathering import gather
from sessions.models import Session, Subscription
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


@pytest.fixture
def run(program: Program) -> Session:
    program.ask("PUT", "/sessions/run", {"agent": "coder", "task": "login"})
    program.post(
        "/sessions/run/messages", {"messages": [{"role": "user", "content": "Log in <x>"}]}
    )
    return Session.objects.get(team=program.team)


def test_a_board_is_read_and_added_to(program: Program, run: Session) -> None:
    given = {"kind": "knowledge", "text": "The port is 80", "key": "port", "files": {"a.py": ""}}
    made = program.post("/sessions/run/notes", given)
    again = program.ask("POST", "/sessions/run/notes", given | {"text": "The port is 81"})
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    board = program.get("/sessions/run/notes")
    assert (board["kind"], board["name"], board["entries"], board["included"]) == (
        "task",
        "login",
        2,
        2,
    )
    # Notes added by hand may precede notes extracted from the session.
    kinds = [(one["kind"], one["text"], one["by"]) for one in board["notes"]]
    assert sorted(kinds) == [
        ("knowledge", "The port is 81", "agent"),
        ("task", "Log in <x>", "code"),
    ]
    assert "<task>Log in &lt;x&gt;</task>" in board["xml"] and board["tokens"] > 0
    assert program.ask("DELETE", f"/sessions/run/notes/{made['id']}").status_code == 200
    assert program.ask("DELETE", f"/sessions/run/notes/{made['id']}").status_code == 404
    assert program.get("/sessions/run/notes")["entries"] == 1


def test_pages_of_a_board(program: Program, run: Session) -> None:
    for number in range(5):
        program.post("/sessions/run/notes", {"kind": "knowledge", "text": f"fact {number}"})
    seen, cursor = [], ""
    while cursor is not None:
        part = program.get(f"/sessions/run/notes?limit=2&kind=knowledge&cursor={cursor}")
        seen += [one["text"] for one in part["notes"]]
        cursor = part["next"]
    assert seen == [f"fact {number}" for number in range(5)]
    refused = program.ask("GET", "/sessions/run/notes?cursor=x")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "?cursor")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "wish", "text": "x"}, "/kind"),
        ({"kind": "plan", "text": "  "}, "/text"),
        ({"kind": "plan"}, "/text"),
        ({"kind": "plan", "text": "x", "files": {"a": 1}}, "/files/a"),
    ],
)
def test_an_entry_that_is_none(program: Program, run: Session, body: dict, field: str) -> None:  # type: ignore[type-arg]
    refused = program.ask("POST", "/sessions/run/notes", body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == field


def test_a_share_by_hand_is_shared_once_per_key(program: Program, run: Session) -> None:
    made = program.post("/sessions/run/shares", {"summary": "Cookies, ann@acme.io", "key": "a"})
    assert (made["version"], made["cause"], made["summary"]) == (1, "by_hand", "Cookies, [EMAIL_1]")
    assert made["masked"] == {"EMAIL": 1} and made["sent"] is None
    again = program.ask("POST", "/sessions/run/shares", {"summary": "Else", "key": "a"})
    assert (again.status_code, again.json()["summary"]) == (200, "Cookies, [EMAIL_1]")
    assert [one["id"] for one in program.get("/sessions/run/shares")["shares"]] == [made["id"]]


def test_subscriptions_are_made_listed_and_ended(
    program: Program, stranger: Program, run: Session
) -> None:
    one = program.post("/subscriptions", {"session": "run", "kind": "agent", "value": "coder"})
    assert (
        program.post("/subscriptions", {"session": str(run.pk), "kind": "agent", "value": "coder"})
        == one
    )
    program.post("/subscriptions", {"session": "run", "kind": "team"})
    result = program.get("/subscriptions?session=run")["subscriptions"]
    assert [(row["kind"], row["value"]) for row in result] == [("team", ""), ("agent", "coder")]
    refused = program.ask("POST", "/subscriptions", {"session": "run", "kind": "task"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/value")
    for body in ({"session": "run", "kind": "team"}, {"session": str(run.pk), "kind": "team"}):
        foreign = stranger.ask("POST", "/subscriptions", body)
        assert (foreign.status_code, foreign.json()["errors"][0]["pointer"]) == (422, "/session")
    assert stranger.get("/subscriptions")["subscriptions"] == []
    assert stranger.ask("DELETE", f"/subscriptions/{one['id']}").status_code == 404
    assert program.ask("DELETE", f"/subscriptions/{one['id']}").status_code == 200
    assert Subscription.objects.count() == 1


def test_memory_is_searched_by_words_and_by_a_board(
    program: Program, stranger: Program, run: Session
) -> None:
    gather(run)
    program.post("/sessions/run/shares", {"summary": "Log in needs a SameSite cookie."})
    found = program.get("/memory?q=samesite%20cookie")
    assert found["query"] == ["samesite", "cookie"]
    (one,) = found["found"]
    assert (one["kind"], one["session"], one["task"]) == ("summary", str(run.pk), "login")
    assert one["untrusted"] is True and one["board"] == {"kind": "task", "name": "login"}
    by_board = program.get("/memory?session=run")["found"]
    assert {row["kind"] for row in by_board} == {"task", "summary"}
    assert stranger.get("/memory?q=cookie")["found"] == []
    assert program.get("/memory") == {"query": [], "found": []}
    Session.objects.update(demo=True)
    both = program.get("/memory?session=run")["found"]
    assert [row["demo"] for row in (*by_board, *both)] == [False, False, True, True]
    assert stranger.ask("GET", "/memory?session=run").status_code == 422


@pytest.mark.parametrize(("form", "key"), [("anthropic", "name"), ("openai", "type")])
def test_the_search_is_a_tool(program: Program, form: str, key: str) -> None:
    made = program.get(f"/memory/tool?format={form}")
    assert made[key] in ("search_memory", "function")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"opening": "all"}, 422, "/opening"),
        ({"opening": "board", "project": "x" * 301}, 422, "/project"),
        ({"opening": "board"}, 201, None),
    ],
)
def test_what_a_session_may_begin_with(
    program: Program,
    body: dict,
    status: int,
    field: str | None,  # type: ignore[type-arg]
) -> None:
    answer = program.ask("PUT", "/sessions/new", body)
    assert answer.status_code == status
    if field:
        assert answer.json()["errors"][0]["pointer"] == field


def test_a_beginning_cannot_change_once_there_are_messages(program: Program, run: Session) -> None:
    refused = program.ask("PUT", "/sessions/run", {"opening": "board"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/opening")
    assert program.ask("PUT", "/sessions/run", {"project": "app"}).status_code == 200
