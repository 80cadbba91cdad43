"""What a call runs in a shell, whatever tool runs it."""

from __future__ import annotations

import json
import re

from compaction.context.blocks import Block
from compaction.context.stubs import arguments
from compaction.seen.calls import command_of

LONGEST_PROGRAM = 20_000
"""Code points of a program searched for commands."""

_NESTED = re.compile(r"\bexec_command\(\{\s*\"?cmd\"?\s*:\s*(\"(?:[^\"\\]|\\.){1,4000}\")")
"""A command call in Codex' code mode."""

_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,80}\bcommit\b")


def commands_of(use: Block) -> str:
    """Return what a call runs in a shell, as sent; "" if it runs nothing.

    For a program in a tool's own language, the commands that it names.
    """
    given = arguments(use) or {}
    run = command_of(given)
    if run is None and isinstance(program := given.get("input"), str):
        run = "; ".join(_unquoted(text) for text in _NESTED.findall(program[:LONGEST_PROGRAM]))
    return run or ""


def commits(use: Block) -> bool:
    """Whether a call runs `git commit`."""
    # Most calls do not mention it: their JSON is not parsed.
    return "commit" in use.text and _COMMIT.search(commands_of(use)) is not None


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
