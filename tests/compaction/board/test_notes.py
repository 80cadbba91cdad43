"""What of a session goes on its board, and what it shows of the project."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.board.board import BoardNote, put
from compaction.board.notes import Gatherer
from compaction.board.project import Observed
from compaction.context.blocks import FileRef
from compaction.context.session import Session
from tests.build import Talk
from tests.compaction.talks import talks


def _used(talk: Talk, tool: str, given: dict[str, Any], shown: str = "ok", **more: Any) -> None:
    file = more.pop("file", None)
    talk.respond()
    talk.result(talk.call(tool, given, file=file), shown, **more)


def _board(talk: Talk, agent: str = "coder") -> dict[str, BoardNote]:
    gatherer, board = Gatherer(agent), dict[str, BoardNote]()
    for block in talk.blocks:
        for entry in gatherer.add(block):
            put(board, entry)
    for entry in gatherer.ended():
        put(board, entry)
    return board


def _notes_of(talk: Talk) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in _board(talk).values()]


def test_the_first_thing_a_person_says_is_the_task() -> None:
    talk = Talk()
    talk.user("<command-name>/clear</command-name>")
    talk.user("/model")
    talk.user("Mend the login.")
    talk.user("And the logout.")
    assert _notes_of(talk) == [("task", "Mend the login.")]


def test_answers_of_turns_and_the_report_at_the_end() -> None:
    talk = Talk()
    talk.user("Mend the login.")
    _used(talk, "Bash", {"command": "pytest"})
    talk.respond()
    talk.say("It was the cookie.")
    talk.user("And the logout?")
    talk.respond()
    talk.say("Also mended.")
    assert _notes_of(talk) == [
        ("task", "Mend the login."),
        ("agent", "Asked: Mend the login.\nAnswered: It was the cookie."),
        ("task_done", "Also mended."),
    ]


def _todos(*texts: str, done: int = 0) -> dict[str, Any]:
    return {
        "todos": [
            {"content": text, "status": "completed" if n < done else "pending"}
            for n, text in enumerate(texts)
        ]
    }


def test_a_plan_is_one_entry_while_it_is_ticked_off_and_grows() -> None:
    talk = Talk()
    talk.user("go")
    _used(talk, "TodoWrite", _todos("read", "write"))
    _used(talk, "TodoWrite", _todos("read", "write", done=1))
    _used(talk, "TodoWrite", _todos("read", "write", "test", done=2))
    assert _notes_of(talk)[1:] == [("plan", "- [x] read\n- [x] write\n- [ ] test")]
    _used(talk, "TodoWrite", _todos("deploy", "announce"))
    assert [kind for kind, _ in _notes_of(talk)] == ["task", "plan", "plan"]


def test_plan_mode_sub_agents_finishing_and_retrieval() -> None:
    talk = Talk()
    talk.user("go")
    _used(talk, "ExitPlanMode", {"plan": "First the cookie."})
    _used(talk, "Task", {"subagent_type": "explorer", "description": "look"}, "It is in auth.py.")
    _used(talk, "WebSearch", {"query": "same-site"}, "Use Lax.")
    _used(talk, "Task", {"description": "fails"}, "boom", error=True)
    _used(talk, "attempt_completion", {"result": "Login works."})
    board = list(_board(talk).values())
    assert [(e.kind, e.agent, e.text, e.untrusted) for e in board[1:]] == [
        ("plan", "coder", "First the cookie.", False),
        ("agent", "explorer", "look: It is in auth.py.", False),
        ("knowledge", "coder", "websearch same-site: Use Lax.", True),
        ("task_done", "coder", "Login works.", False),
    ]
    assert all(entry.message and entry.block for entry in board)


def test_what_is_read_back_again_becomes_knowledge() -> None:
    talk = Talk()
    talk.user("go")
    ref = "m3.0@ab12cd34"
    for call in (
        {"ref": ref},
        {"ref": ref, "offset": 900},
        {"ref": "m5.0"},
        {"ref": "ref m3.0", "grep": "port"},
        {"ref": ref, "head": 5},
    ):
        _used(talk, "mcp__contextlab__read_back", call, f"port = 8080 in {call['ref']}")
    _used(talk, "read_back", {"ref": "m5.0"}, "No block m5.0.", error=True)
    gatherer = Gatherer()
    found: list[BoardNote] = []
    for block in talk.blocks:
        found += gatherer.add(block)
        waits = [block] if block.type == "tool_use" else []
        gatherer = Gatherer.recalled("", json.loads(json.dumps(gatherer.remembered())), waits)
    known = [e for e in found if e.kind == "knowledge"]
    assert [(e.key, e.text, e.untrusted) for e in known] == [
        ("read:m3.0", "Needed 2 times: port = 8080 in ref m3.0", True)
    ]


def test_files_are_known_by_content_and_changes_are_noted() -> None:
    talk = Talk()
    read = FileRef("a.py", "read")
    _used(talk, "Read", {"file_path": "a.py"}, "     1→x = 1\n     2→y = 2", file=read)
    gatherer = Gatherer()
    _feed(gatherer, talk)
    seen = gatherer.files["a.py"]
    assert seen and not gatherer.changed
    _used(
        talk,
        "Write",
        {"file_path": "a.py", "content": "x = 1\ny = 2\n"},
        file=FileRef("a.py", "write"),
    )
    _feed(gatherer, talk)
    assert gatherer.changed == {"a.py": seen}, "written with the same text"
    _used(talk, "Edit", {"file_path": "a.py"}, file=FileRef("a.py", "edit"))
    _feed(gatherer, talk)
    assert gatherer.changed == {"a.py": ""}


def _feed(gatherer: Gatherer, talk: Talk) -> None:
    for block in talk.blocks:
        list(gatherer.add(block))
    talk.blocks.clear()


@given(talks(), st.integers(0, 60))
def test_to_go_on_from_what_is_remembered_is_the_same(session: Session, cut: int) -> None:
    whole, parts = Gatherer("a"), Gatherer("a")
    seen, shown = Observed(), Observed()
    one: list[BoardNote] = []
    two: list[BoardNote] = []
    by_place = {block.position: block for block in session.blocks}
    for place, block in enumerate(session.blocks):
        if place == cut:
            known = json.loads(json.dumps(parts.remembered()))
            parts = Gatherer.recalled("a", known, [by_place[at] for at in known["waiting"]])
            shown = Observed.recalled(json.loads(json.dumps(shown.remembered())))
        one += whole.add(block)
        two += parts.add(block)
        seen.add(block)
        shown.add(block)
    assert one + list(whole.ended()) == two + list(parts.ended())
    assert list(seen.shown()) == list(shown.shown())
    assert (whole.files, whole.read) == (parts.files, parts.read)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (
            {"command": "cd /app && pytest -q tests 2>&1 | tail -5"},
            "Tests run with: pytest -q tests",
        ),
        ({"command": ["bash", "-lc", "cargo test"]}, "Tests run with: cargo test"),
        ({"cmd": "npm run test"}, "Tests run with: npm run test"),
        ({"command": "ls -la"}, None),
        ({"command": "git status"}, None),
        ({"command": "make build"}, None),
        ({"command": 7}, None),
    ],
)
def test_which_commands_tell_of_a_project(given: dict[str, Any], answer: str | None) -> None:
    talk, seen = Talk(), Observed()
    _used(talk, "Bash", given)
    for block in talk.blocks:
        seen.add(block)
    assert [shown.text for shown in seen.shown()] == ([answer] if answer else [])


def test_what_a_project_shows_is_counted() -> None:
    talk, seen = Talk(), Observed()
    for _ in range(3):
        _used(talk, "Bash", {"command": "make build"})
        _used(talk, "Edit", {"file_path": "/app/src/a.py"}, file=FileRef("/app/src/a.py", "edit"))
    _used(talk, "Bash", {"command": "pytest"}, "1 failed", error=True)
    rules = FileRef("/app/AGENTS.md", "read")
    _used(talk, "Read", {"file_path": "/app/AGENTS.md"}, "# Style\nShort.\n## Tests\n", file=rules)
    for block in talk.blocks:
        seen.add(block)
    assert [(shown.text, shown.times) for shown in seen.shown("/app")] == [
        ("Working command: make build", 3),
        ("File in use: src/a.py", 3),
        ("Conventions: AGENTS.md: Style; Tests", 1),
    ]
