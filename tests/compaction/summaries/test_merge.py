"""Merge: one entry per file and command with its final state, each way out of a failure whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from compaction.context.blocks import FileRef
from compaction.context.session import Session
from compaction.summaries.merge import MOST_FAILURES, command_line, merge
from tests.build import Talk
from tests.compaction.talks import talks


def _run(talk: Talk, command: str, said: str = "ok", *, error: bool = False) -> None:
    talk.respond()
    talk.result(talk.call("Bash", {"command": command}), said, error=error)


def _touch(talk: Talk, path: str, action: str, *, error: bool = False) -> None:
    talk.respond()
    use = talk.call(action.title(), {"path": path}, file=FileRef(path, action))  # type: ignore[arg-type]
    talk.result(use, "done", error=error)


def test_ten_edits_of_a_file_are_one_final_state() -> None:
    talk = Talk()
    for _ in range(10):
        _touch(talk, "a.py", "edit")
    _touch(talk, "a.py", "read")
    _touch(talk, "b.py", "edit", error=True)
    (file,) = merge(talk.blocks).files
    assert (file.path, file.action, file.times) == ("a.py", "edit", 11)
    assert file.ref.startswith(talk.blocks[19].id)


def test_runs_of_a_command_are_one_whatever_was_shown_of_them() -> None:
    talk = Talk()
    _run(talk, "cd /x && pytest -q 2>&1 | tail -20", error=True, said="boom")
    _run(talk, "pytest -q | head -n 5")
    _run(talk, "pytest -q tests/b.py")
    for word in "abc":
        _run(talk, f"grep -rn {word} src")
    found = {one.text: (one.status, one.times, one.looks) for one in merge(talk.blocks).commands}
    assert found == {
        "pytest -q": ("succeeded", 2, False),
        "pytest -q tests/b.py": ("succeeded", 1, False),
        "grep -rn c src": ("succeeded", 3, True),
    }


def test_a_check_fails_by_its_output_where_a_pipe_hides_its_status() -> None:
    talk = Talk()
    _run(talk, "go test ./... | tail -5", "--- FAIL: TestA\nFAIL")
    _run(talk, "cat log", "--- FAIL: TestA\nFAIL")
    made = merge(talk.blocks)
    assert {one.text: one.status for one in made.commands} == {
        "go test ./...": "failed", "cat log": "succeeded",
    }  # fmt: skip
    assert [(one.times, one.mended) for one in made.troubles] == [(1, False)]


def test_a_check_is_found_on_any_line_of_a_command() -> None:
    talk = Talk()
    _run(talk, "cd /x\npytest -q", "1 failed, 2 passed")
    _run(talk, "ls\npytest -q", "1 failed, 2 passed")
    _run(talk, "pytest -q", "3 passed")
    made = merge(talk.blocks)
    assert {one.text: (one.status, one.times) for one in made.commands} == {
        "ls pytest -q": ("failed", 1), "pytest -q": ("succeeded", 2),
    }  # fmt: skip


def test_commands_are_found_in_every_form_that_agents_send() -> None:
    talk = Talk()
    talk.respond()
    given: list[dict[str, Any]] = [
        {"command": "make"},
        {"cmd": ["bash", "-lc", "cd /x && make all"]},
        {"input": 'const r = await tools.exec_command({cmd: "git \\"x\\"",\n"workdir": "/a"})'},
        {"path": "a.py"},
    ]
    lines = [command_line(talk.call("shell", one)) for one in given]
    assert lines == ["make", "make all", 'git "x"', None]


def test_the_way_from_failure_over_fix_to_success_stays_whole() -> None:
    talk = Talk()
    _run(talk, "pytest -q", "error: one", error=True)
    _touch(talk, "a.py", "edit")
    _run(talk, "pytest -q", "error: two", error=True)
    _touch(talk, "b.py", "edit")
    _touch(talk, "a.py", "edit")
    _run(talk, "pytest -q", "2 passed")
    _run(talk, "ruff check", "bad", error=True)
    first, second = merge(talk.blocks).troubles
    assert [block.text for block in first.failures] == ["error: one", "error: two"]
    assert (first.fixes, first.mended, first.times) == (["b.py", "a.py"], True, 2)
    assert not second.mended and second.fixes == []


def test_long_hunts_keep_the_first_failure_and_the_last() -> None:
    talk = Talk()
    for number in range(20):
        _run(talk, "make it", f"error: {number}", error=True)
    (one,) = merge(talk.blocks).troubles
    assert len(one.failures) == MOST_FAILURES and one.times == 20
    assert one.failures[0].text == "error: 0" and one.failures[-1].text == "error: 19"


@given(talks())
@settings(max_examples=60)
def test_nothing_is_forgotten_and_nothing_is_made_up(session: Session) -> None:
    made = merge(session.blocks)
    undone = {b.tool_call for b in session.blocks if b.error}
    paths = {b.file.path for b in session.blocks if b.file and b.tool_call not in undone}
    assert {one.path for one in made.files} == paths
    assert sum(one.times for one in made.commands) == made.runs
    assert sum(one.times for one in made.files) == made.operations
    assert len({one.path for one in made.files}) == len(made.files)
    results = {b.id for b in session.blocks if b.type == "tool_result"}
    assert {b.id for one in made.troubles for b in one.failures} <= results
    assert merge(session.blocks) == made
