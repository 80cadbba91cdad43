"""Carry earlier summaries over into the form of a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from compaction.context.blocks import Block, FileAction
from compaction.proposals.plan import SummaryForm
from compaction.seen.people import is_rejected
from compaction.summaries.merge import about, has_failed
from compaction.summaries.sections import form_of
from compaction.summaries.shares import LISTS, MENDED, OPEN
from compaction.summaries.summary import (
    FORMS,
    UNKNOWN,
    WINDOW_HEAD,
    element_key,
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
            if name in LISTS:
                lines = [one for line in lines for one in line.split(", ")]
            if name not in sections:
                others = [line for source in FROM[name] for line in sections.get(source, ())]
                lines = [
                    _written(line, form) for line in map(_element, others) if _belongs(line, name)
                ]
                lines = [line for line in lines if line != UNKNOWN]
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


def succeeded(blocks: Sequence[Block]) -> set[str]:
    """Return what the last successful calls were about, as failure lines begin with it."""
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    found: set[str] = set()
    for block in blocks:
        use = uses.get(block.tool_call)
        if block.type == "tool_result" and use is not None:
            undone = is_rejected(block) or has_failed(use, block)
            (found.discard if undone else found.add)(about(use))
    return found


def brought_up(line: str, ended: set[str]) -> str:
    """Update a line of an earlier summary: a failure in it may have been fixed since."""
    if line.endswith(OPEN) and line.split(": ", 1)[0] in ended:
        return line.removesuffix(OPEN) + MENDED
    return line


def keyed_lines(earlier: list[str], lines: list[str]) -> list[str]:
    """Give elements stable keys.

    The key is the earlier summary's, a new number if it had none, otherwise the position at which
    the file or command first occurred.
    """
    known = {named_by(line): element_key(line) for line in earlier}
    taken = {key for line in [*earlier, *lines] if (key := element_key(line)) is not None}
    free = iter(number for number in range(len(taken) + len(lines) + 1) if number not in taken)
    made = []
    for line in lines:
        key = known.get(named_by(line)) if named_by(line) in known else element_key(line)
        made.append(_with_key(line, next(free) if key is None else key))
    return made


def _with_key(line: str, key: int) -> str:
    bare = re.sub(r' key="\w+"', "", line, count=1)
    if bare.startswith("<file_operation"):
        return bare.replace("<file_operation", f'<file_operation key="fileOp_{key}"', 1)
    return bare.replace("<command", f'<command key="cmd_{key}"', 1)
