"""What sessions show about their project: working commands, files and conventions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.board.board import plain
from compaction.context.blocks import Block
from compaction.context.hints import one_line
from compaction.context.stubs import arguments, digest

MOST_COMMANDS, MOST_FILES = 60, 200
"""Maximum commands and files remembered per session, the newest (our choice)."""

SHOWN_COMMANDS, SHOWN_FILES = 6, 8
WORKED = 2
"""Minimum successful runs of a command that runs no tests (our choice)."""

_SHELL = ("command", "cmd", "script")
_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|jest|vitest|mocha|rspec|phpunit|ctest|nextest)\b"
    r"|\b(?:go|cargo|make|mise|npm|pnpm|yarn|bun|mvn|gradle|gradlew|dotnet|mix|swift|just)"
    r"(?: run)?(?: -\S{1,80}+){0,8}+ (?:test|check)\b"
)
_LOOKS = frozenset(
    re.findall(
        r"\w+",
        "ls cat cd pwd echo head tail sed awk grep egrep rg find fd tree wc which type file stat "
        "du df git gh cp mv rm mkdir touch chmod export env printenv ps kill sleep date history "
        "true whoami printf nl sort uniq diff curl wget man less more xargs tee test source for if"
        " while",
    )
)
"""Read-only and housekeeping commands, which say nothing about a project."""

_AT = re.compile(r"^\s*cd\s+\S+\s*(?:&&|;)\s*")
_RULES = re.compile(
    r"(?:^|/)(?:(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING)[^/]*\.md|\.cursorrules|"
    r"copilot-instructions\.md)$"
)
_HEADING = re.compile(r"^#{1,4}\s+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProjectFact:
    """One thing that a session showed about its project, and how often."""

    key: str
    text: str
    times: int


@dataclass(slots=True)
class Observed:
    """Learns it block by block, in order of position; small, and stored as JSON."""

    commands: dict[str, int] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    _waiting: dict[str, str] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Process the next block."""
        if block.type == "tool_use" and block.tool_call is not None:
            if (command := _command(block)) is not None:
                self._waiting[block.tool_call] = command
                _trim(self._waiting, MOST_COMMANDS)
            if block.file is not None and block.file.action in ("write", "edit"):
                _count(self.files, plain(block.file.path), MOST_FILES)
        elif block.type == "tool_result" and block.tool_call in self._waiting:
            command = self._waiting.pop(block.tool_call)
            if not block.error:
                _count(self.commands, command, MOST_COMMANDS)
        if block.type == "tool_result" and block.file is not None and not block.error:
            path = plain(block.file.path)
            if _RULES.search(path) and block.file.action == "read":
                heads = [one_line(one, 60) for one in _HEADING.findall(plain(block.text[:20_000]))]
                self.rules[path] = "; ".join(heads[:10])
                _trim(self.rules, 10)

    def shown(self, root: str = "") -> Iterator[ProjectFact]:
        """Yield test commands, working commands, files and conventions.

        Paths below `root` are relative to it.
        """
        often = sorted(self.commands.items(), key=lambda one: (-one[1], one[0]))
        tests = [(text, n) for text, n in often if _TESTS.search(text)]
        for text, times in tests[:SHOWN_COMMANDS]:
            yield ProjectFact(f"test:{digest(text)[:16]}", f"Tests run with: {text}", times)
        others = [(text, n) for text, n in often if n >= WORKED and not _TESTS.search(text)]
        for text, times in others[:SHOWN_COMMANDS]:
            yield ProjectFact(f"command:{digest(text)[:16]}", f"Working command: {text}", times)
        edited = sorted(self.files.items(), key=lambda one: (-one[1], one[0]))
        for path, times in edited[:SHOWN_FILES]:
            name = _below(path, root)
            yield ProjectFact(f"file:{digest(name)[:16]}", f"File in use: {name}", times)
        for path, heads in self.rules.items():
            name = _below(path, root)
            text = f"Conventions: {name}" + (f": {heads}" if heads else "")
            yield ProjectFact(f"rules:{digest(name)[:16]}", text, 1)

    def remembered(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "commands": self.commands,
            "files": self.files,
            "rules": self.rules,
            "waiting": self._waiting,
        }

    @classmethod
    def recalled(cls, known: Mapping[str, Any]) -> Observed:
        """Continue from a stored state."""
        names = ("commands", "files", "rules", "waiting")
        return cls(*(dict(known.get(name, {})) for name in names))


def _command(use: Block) -> str | None:
    """Return the command of a shell tool on one line; None if it is read-only."""
    if len(use.text) > 20_000:
        return None
    given = arguments(use) or {}
    found = next((given[key] for key in _SHELL if given.get(key)), None)
    if isinstance(found, list):
        # Codex passes the shell and its command as a list.
        found = (
            found[-1] if found and found[0] in ("bash", "sh", "zsh") else " ".join(map(str, found))
        )
    if not isinstance(found, str):
        return None
    line = _AT.sub("", plain(found).strip().split("\n", 1)[0]).strip()
    word = line.split(" ", 1)[0].rsplit("/", 1)[-1]
    if not line or len(line) > 200 or word in _LOOKS or "<<" in line:
        return None
    return line.split(" | ", 1)[0].removesuffix(" 2>&1").strip() or None


def _below(path: str, root: str) -> str:
    return path.removeprefix(root.rstrip("/") + "/") if root else path


def _count(counted: dict[str, int], name: str, most: int) -> None:
    counted[name] = counted.pop(name, 0) + 1
    _trim(counted, most)


def _trim(held: dict[str, Any], most: int) -> None:
    while len(held) > most:
        del held[next(iter(held))]
