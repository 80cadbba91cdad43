"""How much of a summary each section gets, and which of its lines stay."""

from __future__ import annotations

import re
from collections.abc import Mapping

from compaction.summaries.summary import named_by

SHARES = {
    "primary_request_and_intent": 0.16,
    "key_technical_concepts": 0.06,
    "files_and_code": 0.22,
    "errors_and_fixes": 0.13,
    "problem_solving": 0.14,
    "all_user_messages": 0.13,
    "pending_tasks": 0.06,
    "current_work": 0.07,
    "optional_next_step": 0.03,
    "task_overview": 0.2,
    "steps": 0.2,
    "current_state": 0.1,
    "next_plan": 0.1,
    "file_operations": 0.25,
    "commands": 0.12,
    "flow": 0.3,
    "findings": 0.2,
    "final_state": 0.3,
    "result": 0.15,
    "key_decisions": 0.3,
    "discoveries": 0.25,
    "unresolved_questions": 0.2,
    "entities_and_relations": 0.2,
}
"""The share of the budget that each section may use (our choice)."""

KEEP_FIRST = frozenset({"primary_request_and_intent", "all_user_messages", "task_overview", "flow"})
"""Sections whose oldest line is kept first, because it states the task."""

NEWEST = frozenset({"current_work", "current_state", "optional_next_step", "result"})
"""Sections about the current state: a newer summary replaces the old lines."""

BYTES_PER_TOKEN = 2.6
"""A cautious value of our own: agent logs have 2.8 (docs/sources.md, Token ratios)."""


MENDED, OPEN = " (fixed)", " (not fixed)"
"""The endings of lines about a failure."""

CONSTRAINT = "Constraint: "
"""The beginning of a line that quotes what a person ruled out or prefers."""

LATEST = "Latest: "

CHECKS = ("Tests: ", "Build: ", "Lint: ")
"""The beginnings of lines about the newest run of each kind of check."""

SQUEEZED = frozenset({"all_user_messages"})
"""Sections whose lines are shortened rather than dropped."""

LISTS = frozenset({"key_technical_concepts"})
"""Sections written as one line of names."""

LEAST_LINE = 24
"""Tokens of a line that shortening leaves (our choice)."""

QUOTED_ABOVE = 60
"""Tokens of a message that another section quotes (our choice)."""

_OPENING = 50
"""Code points that identify a message: a summary may have shortened it."""

_INDEXES = frozenset({"files_and_code", "file_operations", "final_state", "entities_and_relations"})
_OPERATIONS = frozenset({"problem_solving", "commands"})
_ENTITY = re.compile(r"&\w{0,4}\Z")


def fitted(merged: Mapping[str, list[str]], budget: int) -> dict[str, list[str]]:
    """Cut sections to their shares.

    What a section does not use goes to those that need more: prose first, then files, because
    agents ask for files again, then commands, then names.
    """
    needs = {name: sum(map(_cost, lines)) for name, lines in merged.items()}
    rooms = {name: min(need, int(budget * SHARES[name])) for name, need in needs.items()}
    left = int(budget * sum(SHARES[name] for name in merged)) - sum(rooms.values())
    for name in sorted(merged, key=_hunger):
        more = min(needs[name] - rooms[name], left)
        rooms[name] += more
        left -= more
    return {
        name: _fit(
            _squeezed(lines, rooms[name]) if name in SQUEEZED else lines,
            rooms[name],
            name in KEEP_FIRST,
        )
        for name, lines in merged.items()
    }


def _hunger(name: str) -> tuple[bool, ...]:
    return name in LISTS, name in _OPERATIONS, name in _INDEXES


def merged_lines(name: str, earlier: list[str], fresh: list[str]) -> list[str]:
    """Merge old and new lines; of two lines about the same subject the newer one stays."""
    if name in ("pending_tasks", "next_plan"):
        # An empty first line means that the span has its own list, even if all of it is done.
        return [line for line in fresh if line] if fresh else earlier
    if name in NEWEST:
        return fresh or earlier
    if name == "primary_request_and_intent" and earlier and fresh:
        # A person may begin a message like that, too: the first line is always one.
        first, *others = fresh
        limits = [line for line in [*earlier, *others] if line.startswith(CONSTRAINT)]
        latest = [first, *(line for line in others if not line.startswith(CONSTRAINT))][-1]
        said = f"{LATEST}{latest.removeprefix(LATEST)}"
        return list(dict.fromkeys([earlier[0], *limits, said]))
    if name == "all_user_messages":
        return list({line[:_OPENING]: line for line in [*earlier, *fresh]}.values())
    kept = {_subject(line): line for line in earlier}
    for line in fresh:
        subject = _subject(line)
        if name not in KEEP_FIRST:
            kept.pop(subject, None)
        kept[subject] = line
    return list(kept.values())


def said_once(merged: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Shorten the first message in the list of messages if the request quotes it."""
    asked = merged.get("primary_request_and_intent", [])
    listed = merged.get("all_user_messages", [])
    if asked and listed and asked[0][:_OPENING] == listed[0][:_OPENING]:
        return {**merged, "all_user_messages": [_cut(listed[0], QUOTED_ABOVE), *listed[1:]]}
    return dict(merged)


def _subject(line: str) -> str:
    """Return what a line is about; of two lines with the same subject the newer one stays."""
    name = named_by(line)
    if name is not None:
        return name
    if line.endswith((MENDED, OPEN)) or line.startswith(CHECKS):
        return line.split(": ", 1)[0]
    return line


def _cost(line: str) -> int:
    return int(len(line.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN) + 2


def _squeezed(lines: list[str], budget: int) -> list[str]:
    """Shorten the longest lines equally, so that all fit if each may keep `LEAST_LINE` tokens."""
    left = budget
    for place, cost in enumerate(sorted(map(_cost, lines))):
        fair = left // (len(lines) - place)
        if cost > fair:
            return [_cut(line, max(fair, LEAST_LINE)) for line in lines]
        left -= cost
    return lines


def _fit(lines: list[str], budget: int, keep_first: bool) -> list[str]:
    """Keep the newest lines within a budget of tokens, and the oldest if it states the task.

    A line too long for the whole budget is cut, unless it is an element or a quotation.
    """
    head = [_cut(lines[0], budget)] if keep_first and lines else []
    rest = lines[len(head) :]
    left = budget - sum(map(_cost, head))
    kept: list[str] = []
    for line in reversed(rest):
        if _cost(line) > left and not (kept or head):
            line = _cut(line, left)
        left -= _cost(line)
        if left < 0:
            break
        kept.append(line)
    return head + kept[::-1]


def _cut(line: str, budget: int) -> str:
    """Cut a line to a budget without splitting an entity."""
    if _cost(line) <= budget or line.startswith(("<", "Quote: ")):
        return line
    room = max(int(len(line) * (budget - 2) / _cost(line)) - 1, 0)
    return _ENTITY.sub("", line[:room]).rstrip() + "…"
