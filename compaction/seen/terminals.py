"""The terminals of a session: their folders, and their latest commands with exit status."""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compaction.context.blocks import Block
from compaction.context.hints import one_line
from compaction.context.stubs import arguments
from compaction.seen.calls import EXTRACTORS, LONGEST_COMMAND, command_of, shell

COMMANDS = 3
"""Newest commands listed per terminal (our choice)."""
TERMINALS = 5
"""Newest terminals listed (our choice)."""
WIDTH = 100

_NAMES = ("terminal_id", "terminal", "session_id", "shell_id", "session", "tab")
_FOLDERS = ("workdir", "cwd", "working_directory", "directory")
_CD = re.compile(r"(?:^|&&|;|\n)[^\S\n]*cd[^\S\n]+(\"[^\"\n]+\"|'[^'\n]+'|[^\s;&|()<>]+)")
_STATUS = re.compile(
    r"^\W{0,2}(?:Process exited with code|The command completed with exit code|Exit code:?"
    r"|Command finished with exit code|returncode>|.{0,40}\"exit_code\":)\s*(-?\d{1,6})",
    re.MULTILINE | re.IGNORECASE,
)
"""Exit status as written by Codex, OpenHands, Claude Code, mini-swe-agent and older Codex."""
_RUNNING = re.compile(r"running (?:in background with|with session) ID", re.IGNORECASE)
_LOOK_AT = 400
"""Code points searched for a status at either end of a result."""


@dataclass(slots=True)
class Terminal:
    """The folder of a terminal, as far as its commands show it, and its newest commands."""

    folder: str = ""
    commands: deque[str] = field(default_factory=lambda: deque(maxlen=COMMANDS))


@dataclass(slots=True)
class Terminals:
    """The terminals of a session by name, the last one used at the end."""

    known: dict[str, Terminal] = field(default_factory=dict)

    def take_in(self, use: Block, result: Block) -> None:
        """Record a call and its result; ignored if it ran no command."""
        tool = (use.tool or "").lower().rsplit("__", 1)[-1]
        if EXTRACTORS.get(tool) is not shell:
            return
        given = arguments(use)
        command = command_of(given) if given is not None else use.text
        if not command:
            return
        name = named(given or {}) or tool
        one = self.known.pop(name, None) or Terminal()
        self.known[name] = one
        while len(self.known) > TERMINALS:
            del self.known[next(iter(self.known))]
        one.folder = folder_after(given or {}, command, one.folder)
        one.commands.append(f"{one_line(command, WIDTH)} ({ended(result)})")

    def lines(self) -> Iterator[str]:
        """Yield a line for each terminal, newest first, with its commands in order."""
        for name, one in reversed(self.known.items()):
            where = f" in {one_line(one.folder, WIDTH)}" if one.folder else ""
            yield f"- {one_line(name, WIDTH)}{where}: {'; '.join(one.commands)}"


def ended(result: Block) -> str:
    """Describe how a command ended: its exit status if reported, else whether it failed."""
    text = result.text
    for part in (text[:_LOOK_AT], text[-_LOOK_AT:]):
        if found := _STATUS.search(part):
            return f"exit {found.group(1)}"
    if _RUNNING.search(text[:_LOOK_AT]):
        return "running"
    return "failed" if result.error else "ok"


def named(given: Mapping[str, Any]) -> str:
    """Return the terminal that a call names; empty if it names none."""
    names = (given.get(key) for key in _NAMES)
    return next((str(one) for one in names if isinstance(one, (str, int)) and one != ""), "")


def folder_after(given: Mapping[str, Any], command: str, before: str) -> str:
    """Return the folder of a terminal after a command; unchanged if unclear."""
    stated = next((given[key] for key in _FOLDERS if isinstance(given.get(key), str)), "")
    folder = stated or before
    if len(command) > LONGEST_COMMAND or "<<" in command:
        return folder
    for found in _CD.finditer(command):
        to = found.group(1).strip("\"'")
        if not to or to.startswith("-") or "$" in to or "`" in to:
            continue
        folder = posixpath.normpath(to if to[0] in "/~" or not folder else f"{folder}/{to}")
    return folder
