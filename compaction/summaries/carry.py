"""Carry earlier summaries over into the form of a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from compaction.context.blocks import FileAction
from compaction.proposals.plan import SummaryForm
from compaction.summaries.sections import form_of
from compaction.summaries.summary import (
    FORMS,
    WINDOW_HEAD,
    file_operation,
    file_operations,
    named_by,
    parse,
)

_BEGINS = re.compile(rf"^(?:<summary>|{re.escape(WINDOW_HEAD)})$", re.MULTILINE)

FROM: Mapping[str, tuple[str, ...]] = {
    # nine sections
    "primary_request_and_intent": ("task_overview", "key_decisions"),
    "key_technical_concepts": (),
    "files_and_code": ("file_operations", "final_state", "entities_and_relations"),
    "errors_and_fixes": ("steps", "flow", "findings", "discoveries"),
    "problem_solving": ("commands",),
    "all_user_messages": (),
    "pending_tasks": ("next_plan", "unresolved_questions"),
    "current_work": ("current_state", "final_state", "result"),
    "optional_next_step": (),
    # a task under way
    "task_overview": ("primary_request_and_intent", "all_user_messages", "key_decisions"),
    "steps": ("errors_and_fixes", "problem_solving", "flow", "findings", "discoveries"),
    "current_state": ("current_work", "final_state", "result"),
    "next_plan": ("pending_tasks", "unresolved_questions"),
    "file_operations": ("files_and_code", "final_state", "entities_and_relations"),
    "commands": ("problem_solving",),
    # a task that is over
    "flow": ("primary_request_and_intent", "task_overview", "all_user_messages", "steps",
             "problem_solving", "key_decisions"),
    "findings": ("errors_and_fixes", "discoveries"),
    "final_state": ("files_and_code", "file_operations", "entities_and_relations"),
    "result": ("current_work", "current_state"),
    # the sliding window's note
    "key_decisions": ("primary_request_and_intent", "task_overview", "flow"),
    "discoveries": ("errors_and_fixes", "steps", "findings"),
    "unresolved_questions": ("pending_tasks", "next_plan"),
    "entities_and_relations": ("files_and_code", "file_operations", "final_state"),
}  # fmt: skip
"""The sections of other forms whose lines a section takes over."""

ELEMENTS = frozenset({"files_and_code", "file_operations", "commands"})
"""Sections that take only elements from a section of another name."""

_PROSE = frozenset({"errors_and_fixes", "steps", "current_work", "current_state", "flow"})
"""Sections that take everything but elements from a section of another name."""


def carried(previous: str | None, form: SummaryForm) -> dict[str, list[str]]:
    """Return the lines of all earlier summaries by the sections of a form, oldest summary first.

    A section of the same name is taken over as it is; others go where `FROM` says, elements and
    prose separately.
    """
    found: dict[str, list[str]] = {}
    for text in _each(previous or ""):
        old = form_of(text)
        if old == "numbered" or old == "free":
            continue
        sections = parse(text, old)
        for name in FORMS[form]:
            lines = list(sections.get(name, ()))
            if name not in sections:
                others = [line for source in FROM[name] for line in sections.get(source, ())]
                lines = [
                    _written(line, form) for line in map(_element, others) if _belongs(line, name)
                ]
            kept = found.setdefault(name, [])
            kept.extend(line for line in dict.fromkeys(lines) if line not in kept)
    return found


def _belongs(line: str, name: str) -> bool:
    element = named_by(line) is not None
    if name in ELEMENTS or name == "entities_and_relations":
        return element
    return not (element and name in _PROSE)


def _element(line: str) -> str:
    """Convert a file line of a sliding window's note to the element of other forms."""
    path, colon, action = line.rpartition(": ")
    return file_operation(path, action) if colon and action in get_args(FileAction) else line


def _written(line: str, form: SummaryForm) -> str:
    """Write a line for a form: the sliding window's note has no elements."""
    files = file_operations(line) if form == "window" else []
    return f"{files[0][0]}: {files[0][1]}" if files else line


def _each(previous: str) -> Iterator[str]:
    """Split a text into consecutive summaries."""
    starts = [match.start() for match in _BEGINS.finditer(previous)] or [0]
    for start, end in zip(starts, [*starts[1:], len(previous)], strict=True):
        yield previous[start:end].strip()
