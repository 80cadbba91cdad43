"""A repair shows again what was lost; work that is done again because it changed does not."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.blocks import FileRef
from compaction.context.edits import Entry
from compaction.losses.repairs import repairs
from tests.build import Talk

OUT = "first line\nsecond line\nthird line"


def kinds(
    tool: str,
    given: dict[str, Any],
    file: FileRef | None = None,
    *,
    error: bool = False,
    between: tuple[str, dict[str, Any], FileRef | None] | None = None,
) -> list[str]:
    """The repairs of a compaction, after which a call is made a second time."""
    talk = Talk()
    talk.user("Go.")
    talk.respond()
    talk.result(talk.call(tool, given, file=file), OUT, error=error)
    removed = len(talk.blocks)
    if between is not None:
        talk.respond()
        talk.result(talk.call(between[0], between[1], file=between[2]), "done")
    talk.respond()
    talk.result(talk.call(tool, given, file=file), OUT, error=error)
    step = 2 if between is None else 3
    entries = [
        Entry(block, block.born, step, closed_by=1) if place < removed else Entry(block, block.born)
        for place, block in enumerate(talk.blocks)
    ]
    return [one.kind for one in repairs(entries, {1: step})]


@pytest.mark.parametrize(
    ("tool", "given", "file", "found"),
    [
        ("Read", {"file_path": "a.py"}, FileRef("a.py", "read"), ["reread"]),
        ("Grep", {"pattern": "port"}, FileRef(".", "list"), ["repeat"]),
        ("Bash", {"command": "cat a.py"}, FileRef("a.py", "read"), ["reread"]),
        ("Bash", {"command": "rg port docs | head -5"}, None, ["repeat"]),
        ("Bash", {"command": "git log --oneline"}, None, ["repeat"]),
        ("WebFetch", {"url": "https://example.org"}, None, ["repeat"]),
        ("mcp__shop__get_order", {"id": 7}, None, ["repeat"]),
        ("Bash", {"command": "mise run test:ci"}, None, []),
        ("Bash", {"command": "mise run fmt && mise run lint"}, None, []),
        ("Bash", {"command": "cargo build"}, None, []),
        ("Bash", {"command": "./deploy.sh"}, None, []),
        ("Bash", {"command": "cat a.py > b.py"}, None, []),
        ("Edit", {"file_path": "a.py"}, FileRef("a.py", "edit"), []),
        ("TaskUpdate", {"taskId": "3", "status": "completed"}, None, []),
        ("TodoWrite", {"todos": []}, None, []),
        ("think", {"thought": "x"}, None, []),
    ],
)
def test_only_a_look_is_a_repair(
    tool: str, given: dict[str, Any], file: FileRef | None, found: list[str]
) -> None:
    assert kinds(tool, given, file) == found


EDIT = ("Edit", {"file_path": "a.py"}, FileRef("a.py", "edit"))
COMMIT = ("Bash", {"command": "git commit -am x"}, None)
LOOK = ("Bash", {"command": "ls"}, None)


@pytest.mark.parametrize(
    ("command", "between", "found"),
    [
        ("git status", None, ["repeat"]),
        ("git status", LOOK, ["repeat"]),
        ("git status", EDIT, []),
        ("git diff --stat", COMMIT, []),
        ("rg port docs", EDIT, ["repeat"]),
    ],
)
def test_a_look_at_work_that_changed_is_none(
    command: str, between: tuple[str, dict[str, Any], FileRef | None] | None, found: list[str]
) -> None:
    assert kinds("Bash", {"command": command}, between=between) == found


@pytest.mark.parametrize(
    ("command", "found"), [("mise run test", []), ("./deploy.sh", []), ("cat a.py", ["repeat"])]
)
def test_a_command_that_fails_again_when_run_again_is_none(command: str, found: list[str]) -> None:
    assert kinds("Bash", {"command": command}, error=True) == found
