"""Commands: what calls of every form run in a shell."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.seen.commands import commands_of, commits
from tests.build import Talk

COMMIT = "git add -A && git commit -qm 'Done'"


@pytest.mark.parametrize(
    ("tool", "given", "commands"),
    [
        ("Bash", {"command": COMMIT}, COMMIT),
        ("shell", {"command": ["bash", "-lc", COMMIT]}, COMMIT),
        ("exec", {"input": f'await exec_command({{cmd: "{COMMIT}"}})'}, COMMIT),
        ("exec", {"input": r'exec_command({"cmd": "a\tb"}); exec_command({cmd: "c"})'}, "a\tb; c"),
        ("exec", {"input": r'exec_command({cmd: "\x"})'}, r"\x"),
        ("Write", {"path": "guide.md", "content": COMMIT}, ""),
        ("Grep", {"pattern": "git commit"}, ""),
    ],
)
def test_commands(tool: str, given: dict[str, Any], commands: str) -> None:
    use = Talk().call(tool, given)
    assert commands_of(use) == commands
    assert commits(use) == (commands == COMMIT)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("git -C /x commit --amend", True),
        ("make\ngit commit -F message", True),
        ("git log\necho commit", False),
        ("git log | grep commit", False),
        ("git status", False),
    ],
)
def test_commits(command: str, answer: bool) -> None:
    assert commits(Talk().call("Bash", {"command": command})) == answer
