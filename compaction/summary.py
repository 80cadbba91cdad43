"""What a summary of history holds: its sections, how it is read back and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import get_args

from compaction.context import FileAction
from compaction.plan import SummaryForm

NINE = (
    "primary_request_and_intent",
    "key_technical_concepts",
    "files_and_code",
    "errors_and_fixes",
    "problem_solving",
    "all_user_messages",
    "pending_tasks",
    "current_work",
    "optional_next_step",
)
"""Sections of the long form, in order (Claude Code's, as CodeGenius took them)."""

WINDOW = ("key_decisions", "discoveries", "unresolved_questions", "entities_and_relations")
"""Sections of the sliding window's note, in order (Shannon)."""

WINDOW_HEAD = "Previous context summary:"
NONE = "None"

Sections = Mapping[str, Sequence[str]]
"""Lines by section name, already escaped."""

STATUSES = ("succeeded", "failed")

_FILE = re.compile(r'<file_operation path="([^"]*)" action="([^"]*)"(?: ref="([^"]*)")?\s*/>')
_COMMAND = re.compile(r'<command execution="([^"]*)" status="([^"]*)"\s*/>')
_ANY_FIXED = re.compile(r"<(?:file_operation|command)\b[^>]*>")


def names(form: SummaryForm) -> tuple[str, ...]:
    """The sections of a form, in order."""
    return NINE if form == "nine" else WINDOW


def render(sections: Sections, form: SummaryForm = "nine") -> str:
    """A summary as text; a section without lines says `None`, so that nothing seems forgotten."""
    if form == "window":
        parts = [WINDOW_HEAD]
        for name in WINDOW:
            parts.append(f"{_title(name)}:")
            parts.extend(f"- {line}" for line in sections.get(name) or (NONE,))
        return "\n".join(parts)
    parts = ["<summary>"]
    for name in NINE:
        lines = sections.get(name) or (NONE,)
        parts.append(f"<{name}>\n" + "\n".join(lines) + f"\n</{name}>")
    parts.append("</summary>")
    return "\n".join(parts)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def parse(text: str, form: SummaryForm = "nine") -> dict[str, list[str]]:
    """The lines of each section of a summary; absent sections are absent, `None` is no line."""
    found: dict[str, list[str]] = {}
    if form == "window":
        titles = {f"{_title(name)}:": name for name in WINDOW}
        current: list[str] | None = None
        for line in text.splitlines():
            if line in titles:
                current = found.setdefault(titles[line], [])
            elif current is not None and line.startswith("- ") and line[2:] != NONE:
                current.append(line[2:])
        return found
    for name in NINE:
        opening, closing = text.find(f"<{name}>"), text.find(f"</{name}>")
        if 0 <= opening < closing:
            body = text[opening + len(name) + 2 : closing].strip()
            found[name] = [] if body == NONE else [line for line in body.splitlines() if line]
    return found


def problems(text: str, form: SummaryForm = "nine") -> list[str]:
    """Why a summary must not be stored; empty when it may.

    The long form needs all nine sections, in order, each with content or an explicit `None`, and
    its fixed elements well-formed; a summary that says nothing at all is refused in both forms.
    """
    found = parse(text, form)
    wrong = [f"section {name} is missing" for name in names(form) if name not in found]
    if form == "nine":
        places = [text.find(f"<{name}>") for name in NINE if name in found]
        if places != sorted(places):
            wrong.append("sections are not in order")
        if not text.startswith("<summary>") or not text.rstrip().endswith("</summary>"):
            wrong.append("it is not enclosed in <summary>")
        wrong.extend(_fixed_elements(text))
    elif not text.startswith(WINDOW_HEAD):
        wrong.append(f"it does not begin with {WINDOW_HEAD!r}")
    if not any(found.values()):
        wrong.append("no section says anything")
    return wrong


def _fixed_elements(text: str) -> list[str]:
    wrong = []
    for element in _ANY_FIXED.findall(text):
        file, command = _FILE.fullmatch(element), _COMMAND.fullmatch(element)
        if file is None and command is None:
            wrong.append(f"malformed element {element[:80]}")
        elif file is not None and file.group(2) not in get_args(FileAction):
            wrong.append(f"unknown action {file.group(2)[:40]}")
        elif command is not None and command.group(2) not in STATUSES:
            wrong.append(f"unknown status {command.group(2)[:40]}")
    return wrong


def _attribute(text: str) -> str:
    return escape(text, quote=False).replace('"', "&quot;")


def file_operation(path: str, action: str, ref: str = "") -> str:
    """The fixed element for the last thing done to a file; `ref` leads to the block that did it."""
    tail = f' ref="{_attribute(ref)}"' if ref else ""
    return f'<file_operation path="{_attribute(path)}" action="{action}"{tail}/>'


def command(execution: str, status: str) -> str:
    """The fixed element for the last run of a command."""
    return f'<command execution="{_attribute(execution)}" status="{status}"/>'


def file_operations(text: str) -> list[tuple[str, str, str]]:
    """(path, action, reference) of each file operation in a summary."""
    return [(unescape(p), a, unescape(r)) for p, a, r in _FILE.findall(text)]
