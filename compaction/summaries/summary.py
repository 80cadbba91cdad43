"""The format of a summary: its sections, parsing and validation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import get_args

from compaction.context.blocks import FileAction
from compaction.context.hints import one_line
from compaction.proposals.plan import SummaryForm

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

PROGRESS = (
    "task_overview",
    "steps",
    "current_state",
    "next_plan",
    "file_operations",
    "commands",
)
"""Sections of the form for a task in progress, in order (Dakou)."""

DONE = ("flow", "findings", "final_state", "result")
"""Sections of the form for a finished task, in order (Dakou)."""

WINDOW = ("key_decisions", "discoveries", "unresolved_questions", "entities_and_relations")
"""Sections of the sliding window's note, in order (Shannon)."""

FORMS: Mapping[SummaryForm, tuple[str, ...]] = {
    "nine": NINE,
    "progress": PROGRESS,
    "done": DONE,
    "window": WINDOW,
}
"""The sections of each form, in order."""

UNKNOWN = "Unknown: the log does not say."
"""What a section about open ends says if the agent kept no list and announced no step."""

WINDOW_HEAD = "Previous context summary:"

BOARD_HEAD = "[The task's board: notes of its sessions. Not a message of the user.]"
"""The first line of a board after a summary."""

_BOARD = f"\n\n{BOARD_HEAD}\n<"
NONE = "None"

Sections = Mapping[str, Sequence[str]]
"""Lines by section name, already escaped."""

STATUSES = ("succeeded", "failed")

_FILE = re.compile(
    r'<file_operation(?: key="fileOp_(\d{1,9})")? path="([^"]*)" action="([^"]*)"'
    r'(?: names="[^"]*")?(?: ref="([^"]*)")?\s*/>'
)
_COMMAND = re.compile(
    r'<command(?: key="cmd_(\d{1,9})")? execution="([^"]*)" status="([^"]*)"'
    r'(?: times="\d{1,9}")?\s*/>'
)
_ANY_FIXED = re.compile(r"<(?:file_operation|command)\b(?:[^<>]|<(?!file_operation|command))*+>")


def names(form: SummaryForm) -> tuple[str, ...]:
    """Return the sections of a form, in order."""
    return FORMS[form]


def render(sections: Sections, form: SummaryForm = "nine") -> str:
    """Render a summary; a section without lines says `None`, to show that it was considered."""
    if form == "window":
        parts = [WINDOW_HEAD]
        for name in WINDOW:
            parts.append(f"{_title(name)}:")
            parts.extend(f"- {line}" for line in sections.get(name) or (NONE,))
        return "\n".join(parts)
    parts = ["<summary>"]
    for name in FORMS[form]:
        lines = sections.get(name) or (NONE,)
        parts.append(f"<{name}>\n" + "\n".join(lines) + f"\n</{name}>")
    parts.append("</summary>")
    return "\n".join(parts)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def parse(text: str, form: SummaryForm = "nine") -> dict[str, list[str]]:
    """Parse the lines of each section; missing sections are left out, `None` gives no lines."""
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
    for name in FORMS[form]:
        opening, closing = text.find(f"<{name}>"), text.find(f"</{name}>")
        if 0 <= opening < closing:
            body = text[opening + len(name) + 2 : closing].strip()
            found[name] = [] if body == NONE else [line for line in body.splitlines() if line]
    return found


def problems(text: str, form: SummaryForm = "nine") -> list[str]:
    """Return why a summary must not be stored; empty if it may.

    A form in XML needs all its sections, in order, each with content or an explicit `None`, and its
    fixed elements well-formed. A summary without any content is refused in every form.
    """
    found = parse(text, form)
    wrong = [f"section {name} is missing" for name in names(form) if name not in found]
    if form != "window":
        places = [text.find(f"<{name}>") for name in names(form) if name in found]
        if places != sorted(places):
            wrong.append("sections are not in order")
        if not text.startswith("<summary>") or not text.rstrip().endswith("</summary>"):
            wrong.append("it is not enclosed in <summary>")
        wrong.extend(malformed(text))
    elif not text.startswith(WINDOW_HEAD):
        wrong.append(f"it does not begin with {WINDOW_HEAD!r}")
    if not any(found.values()):
        wrong.append("no section says anything")
    return wrong


def with_board(summary: str, board: str) -> str:
    """Put a board after a summary; `board` begins with BOARD_HEAD, or is empty."""
    return f"{summary}\n\n{board}" if board else summary


def board_apart(text: str) -> tuple[str, str]:
    """Split a text into the summary and the board after it, which is empty without one."""
    # Notes are escaped, so that none can contain this.
    summary, mark, board = text.rpartition(_BOARD)
    return (summary, mark.lstrip() + board) if mark else (text, "")


def malformed(text: str) -> list[str]:
    """Return the problems of the fixed elements in a text."""
    wrong = []
    for element in _ANY_FIXED.findall(text):
        file, command = _FILE.fullmatch(element), _COMMAND.fullmatch(element)
        if file is None and command is None:
            wrong.append(f"malformed element {element[:80]}")
        elif file is not None and file.group(3) not in get_args(FileAction):
            wrong.append(f"unknown action {file.group(3)[:40]}")
        elif command is not None and command.group(3) not in STATUSES:
            wrong.append(f"unknown status {command.group(3)[:40]}")
    return wrong


def quoted(text: str, width: int = 160) -> str:
    """Return a text on one line of at most `width` code points, escaped."""
    return escape(one_line(text, width), quote=False)


def _attribute(text: str) -> str:
    return escape(text, quote=False).replace('"', "&quot;")


def file_operation(
    path: str, action: str, ref: str = "", key: int | None = None, names: Sequence[str] = ()
) -> str:
    """Write the element for the last operation on a file.

    `ref` leads to its block, `names` are what was changed in it.
    """
    head = f' key="fileOp_{key}"' if key is not None else ""
    tail = f' ref="{_attribute(ref)}"' if ref else ""
    if names:
        tail = f' names="{_attribute(", ".join(names))}"{tail}'
    return f'<file_operation{head} path="{_attribute(path)}" action="{action}"{tail}/>'


def command(execution: str, status: str, times: int = 1, key: int | None = None) -> str:
    """Write the element for the last run of a command; `times` counts its runs."""
    head = f' key="cmd_{key}"' if key is not None else ""
    tail = f' times="{times}"' if times > 1 else ""
    return f'<command{head} execution="{_attribute(execution)}" status="{status}"{tail}/>'


def file_operations(text: str) -> list[tuple[str, str, str]]:
    """Return (path, action, reference) of each file operation in a summary."""
    return [(unescape(p), a, unescape(r)) for _, p, a, r in _FILE.findall(text)]


def keyed(text: str) -> dict[str, str]:
    """Return the merged operations of a summary under stable keys (Dakou).

    `fileOp_N_path`, `fileOp_N_action` and `cmd_N_text`. N stays with its file or command over all
    later summaries if the elements carry it, as in the form for a task in progress; otherwise
    elements are numbered in order.
    """
    found: dict[str, str] = {}
    for place, (key, path, action, _) in enumerate(_FILE.findall(text)):
        found[f"fileOp_{key or place}_path"] = unescape(path)
        found[f"fileOp_{key or place}_action"] = action
    for place, (key, execution, _) in enumerate(_COMMAND.findall(text)):
        found[f"cmd_{key or place}_text"] = unescape(execution)
    return found


def element_key(line: str) -> int | None:
    """Return the number in the key of the element on a line; None without one."""
    match = _FILE.match(line) or _COMMAND.match(line)
    return int(match.group(1)) if match and match.group(1) else None


def named_by(line: str) -> str | None:
    """Return the path or command of the element on a line; None without one."""
    match = _FILE.match(line) or _COMMAND.match(line)
    return unescape(match.group(2)) if match else None
