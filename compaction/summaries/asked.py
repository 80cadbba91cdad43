"""What a summary is asked to hold beside facts: its form's sections, people's words, open todos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.context import Block
from compaction.facts.facts import texts_of
from compaction.recitation.todo import Todo
from compaction.summaries.sections import form_of, presence, title
from compaction.summaries.told import Lines

PartState = Literal["present", "none", "missing", "unasked"]

MESSAGES, TODOS = "all_user_messages", "pending_tasks"

LONGEST = 400_000
"""Code points of a summary, and of what stands beside it, in which words are looked for."""

MOST_MESSAGES = 500
"""Messages that are asked for, the newest."""

NOT_SAID = ("[Request interrupted", "<command-", "<local-command-", "Caveat:")
"""How texts begin that Claude Code writes in a person's name."""

_OPEN = "- [ ] "


@dataclass(frozen=True, slots=True)
class Part:
    """A section and whether it is there (`unasked`: this form has none of that name). For people's
    messages and open todos also how many there were, and how many the context still tells."""

    name: str
    title: str
    state: PartState
    told: int | None = None
    of: int | None = None


def parts_of(span: Sequence[Block], summary: str, standing: Sequence[Block]) -> list[Part]:
    """What became of everything that a summary of this span is asked for.

    A message or todo is told where it stands, or where one line has most of its distinctive words;
    a message also where a line has the words it opens with. Messages that were not replaced are
    not asked for.
    """
    summary = summary[:LONGEST]
    texts = [text for block in standing for text in texts_of(block)]
    lines = Lines("\n".join([summary, *texts])[:LONGEST])
    said = [block.text[:LONGEST] for block in span if _is_said(block)][-MOST_MESSAGES:]
    counts = {MESSAGES: said, TODOS: _open_todos(span, standing)}
    found = [
        Part(one.name, title(one.name), one.state) for one in presence(summary, form_of(summary))
    ]
    for name, wanted in counts.items():
        quoted = lines.quote if name == MESSAGES else lines.tell
        told = sum(lines.tell(one) or quoted(one) for one in wanted)
        place = next((i for i, part in enumerate(found) if part.name == name), None)
        if place is not None:
            part = found[place]
            found[place] = Part(name, part.title, part.state, told, len(wanted))
        elif wanted:
            found.append(Part(name, title(name), "unasked", told, len(wanted)))
    return found


def _is_said(block: Block) -> bool:
    if block.kind != "user" or block.role != "user" or block.type != "text":
        return False
    return bool(block.text.strip()) and not block.text.startswith(NOT_SAID)


def _open_todos(span: Sequence[Block], standing: Sequence[Block]) -> list[str]:
    """What the newest list leaves open, whether it was replaced or stands."""
    todo, uses = Todo(), {}
    for number, block in enumerate(sorted([*span, *standing], key=lambda b: b.position)):
        if block.type == "tool_use":
            uses[block.tool_call] = block
        elif block.type == "tool_result" and not block.error:
            use = uses.get(block.tool_call)
            if use is not None:
                todo.take_in(use, block, number)
    lines = [line.strip() for line in todo.text.splitlines()]
    return [
        line.removeprefix(_OPEN).removesuffix(" (in progress)")
        for line in lines
        if line.startswith(_OPEN)
    ]
