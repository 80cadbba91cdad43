"""Signature of a failed call: one line that identifies it, for a traceback its last error."""

from __future__ import annotations

import re

LOOK_AT = 20_000
"""Code points read from the end of a text: tracebacks end with the error."""

WIDTH = 200
"""Maximum code points of a signature."""

_NAMED = re.compile(
    r"(?:(?<=\w)|(?<=\w\.))(?:Error|Exception|Panic)\b|\berror\[\w{1,12}\]",
)
_SAYS = re.compile(
    r"\b(?:error|failed|failure|fail|fatal|panic|cannot|denied|undefined|not found|no such"
    r"|refused|unknown|invalid|missing|timed out)\b",
    re.IGNORECASE,
)
_WRAPPING = re.compile(
    r"^(?:exit (?:code|status) \d{1,4}|traceback .{0,60}:|-+|=+)$", re.IGNORECASE
)
_WORD = re.compile(r"\w{2}")
_HEADER = re.compile(
    r"(?:[^\n]{1,80}\n){0,6}?(?:Process exited with code|Exit code:) -?\d{1,10}\n"
    r"(?:[^\n]{1,80}\n){0,4}?Output:(?:\n|$)"
)
"""The header that Codex writes above a program's output."""

_TAGS = re.compile(r"</?tool_use_error>")
_REFUSED = "The user doesn't want to proceed with this tool use"
"""Claude Code's message when a person refuses a call, which is not a failure."""

_VARIES = re.compile(r"0x[0-9a-f]{1,16}|\d+")


def signature(text: str) -> str:
    """Return the line that identifies a failed result.

    The last line that names an error, else the last that mentions one, else the first; below the
    header in Codex output. Empty if no line has a word, or if a person refused the call.
    """
    if text.startswith(_REFUSED):
        return ""
    header = _HEADER.match(text)
    text = text[header.end() if header else 0 :]
    body = _TAGS.sub("", text[-LOOK_AT:])
    lines = [" ".join(line[: 4 * WIDTH].split()) for line in body.splitlines()]
    lines = [line for line in lines if _WORD.search(line) and not _WRAPPING.match(line)]
    for telling in (_NAMED, _SAYS):
        for line in reversed(lines):
            if telling.search(line):
                return line[:WIDTH]
    return lines[0][:WIDTH] if lines else ""


def tells_error(line: str) -> bool:
    """Return whether a line of a failed result names an error or mentions one."""
    return bool(_NAMED.search(line) or _SAYS.search(line))


def alike(line: str) -> str:
    """Normalize a signature: without numbers, addresses and case, which vary between runs."""
    return _VARIES.sub("0", line.casefold())
