"""To-do lists: every dialect gives the same open items."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.blocks import FileRef
from compaction.seen.todo import newest_todo
from tests.build import Talk

DIALECTS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "Claude Code, lists": [("TodoWrite", {"todos": [
        {"content": "read", "status": "completed"}, {"content": "fix it", "status": "in_progress"},
        {"content": "ask", "status": "pending"}]}, "ok")],
    "Codex": [("update_plan", {"plan": [
        {"step": "read", "status": "completed"}, {"step": "fix it", "status": "in_progress"},
        {"step": "ask", "status": "pending"}]}, "Plan updated")],
    "LangChain": [("write_todos", {"todos": [
        {"content": "read", "status": "completed"}, {"content": "fix it", "status": "in_progress"},
        {"content": "ask", "status": "pending"}]}, "Updated todo list")],
    "OpenHands": [("task_tracker", {"command": "plan", "task_list": [
        {"title": "read", "status": "done"}, {"title": "fix it", "status": "in_progress"},
        {"title": "ask", "status": "todo"}]}, "ok")],
    "JSON as text": [("TodoWrite", {
        "todos": '[{"content": "fix it", "status": "in_progress"}, {"content": "ask"}]'}, "ok")],
    "Cline": [("read_file", {
        "path": "a.py", "task_progress": "- [x] read\n- [~] fix it\n- [ ] ask"}, "x = 1")],
    "Roo Code": [("update_todo_list", {"todos": "[x] read\n[-] fix it\n[ ] ask"}, "ok")],
    "later list": [
        ("TodoWrite", {"todos": [{"content": "old"}]}, "ok"),
        ("TodoWrite", {"todos": "not json"}, "ok"),
        ("TodoWrite", {"todos": [3]}, "ok"),
        ("update_plan", {"plan": [{"step": "fix it", "status": "in_progress"}, {"step": "ask"}]},
         "ok"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_open_items(dialect: str) -> None:
    talk = Talk()
    for tool, given, result in DIALECTS[dialect]:
        talk.respond()
        talk.result(talk.call(tool, given), result)
    todo = newest_todo(talk.blocks)
    assert todo is not None and todo.open == ["fix it (in progress)", "ask"]


def test_a_file_named_todo() -> None:
    talk = Talk()
    given = {"path": "todo.md", "content": "# Plan\n- [x] a\n- [ ] b\n  - [ ] c\n- [~] d"}
    talk.result(talk.call("write", given, file=FileRef("todo.md", "write")), "ok")
    todo = newest_todo(talk.blocks)
    assert todo is not None and todo.open == ["b", "c", "d (in progress)"]


def _tasks() -> Talk:
    talk = Talk()
    for number, subject in enumerate(("read", "fix it", "ask"), 1):
        talk.respond()
        use = talk.call("TaskCreate", {"subject": subject, "description": "long"})
        talk.result(use, f"Task #{number} created successfully: {subject}")
    return talk


def _update(talk: Talk, number: int, status: str) -> None:
    talk.respond()
    use = talk.call("TaskUpdate", {"taskId": str(number), "status": status})
    talk.result(use, f"Updated task #{number} status")


def test_tasks_by_number() -> None:
    talk = _tasks()
    _update(talk, 1, "completed")
    _update(talk, 2, "in_progress")
    todo = newest_todo(talk.blocks)
    assert todo is not None and todo.open == ["#2 fix it (in progress)", "#3 ask"]
    _update(talk, 3, "deleted")
    _update(talk, 2, "completed")
    todo = newest_todo(talk.blocks)
    assert todo is not None and todo.open == []


def test_tasks_of_an_earlier_summary_are_known_by_their_number() -> None:
    talk = Talk()
    _update(talk, 2, "completed")
    assert newest_todo(talk.blocks) is None
    todo = newest_todo(talk.blocks, ["#2 fix it (in progress)", "#3 ask", "no number"])
    assert todo is not None and todo.open == ["#3 ask"]


def test_a_listing_names_tasks_that_no_call_created() -> None:
    talk = Talk()
    talk.respond()
    shown = "#1 [completed] read\n#2 [in_progress] fix it [blocked by #1]\n#3 [pending] ask"
    talk.result(talk.call("TaskList", {}), shown)
    todo = newest_todo(talk.blocks)
    assert todo is not None and todo.open == ["#2 fix it (in progress)", "#3 ask"]


def test_without_a_list_there_is_none() -> None:
    talk = Talk()
    talk.respond()
    talk.result(talk.call("Bash", {"command": "ls"}), "todo.md")
    talk.result(talk.call("TodoWrite", {"todos": [{"content": "x"}]}), "denied", error=True)
    assert newest_todo(talk.blocks) is None
