"""What a summary must contain besides facts: sections, people's messages, open to-do items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.context.blocks import Block
from compaction.facts.facts import texts_of
from compaction.seen.people import message_of
from compaction.seen.todo import newest_todo
from compaction.summaries.lines import IndexedLines
from compaction.summaries.sections import form_of, presence, title

PartState = Literal["present", "none", "missing", "unasked"]

MESSAGES, TODOS = "all_user_messages", "pending_tasks"

LONGEST = 400_000
"""Maximum code points searched in a summary and in the blocks next to it."""

MOST_MESSAGES = 500
"""Maximum messages checked, the newest."""


@dataclass(frozen=True, slots=True)
class AskedSection:
    """A section and its state (`unasked`: the form has no such section).

    For people's messages and open to-do items also how many there were, and how many the context
    still mentions.
    """

    name: str
    title: str
    state: PartState
    covered: int | None = None
    of: int | None = None


def parts_of(span: Sequence[Block], summary: str, standing: Sequence[Block]) -> list[AskedSection]:
    """Return the state of everything that a summary of this span must contain.

    A message or item counts if it is in the context, or if one line has most of its distinctive
    words; a message also if a line has its opening words. Messages that were not replaced are not
    checked.
    """
    summary = summary[:LONGEST]
    texts = [text for block in standing for text in texts_of(block)]
    lines = IndexedLines("\n".join([summary, *texts])[:LONGEST])
    said = [text for block in span if (text := message_of(block))][-MOST_MESSAGES:]
    counts = {MESSAGES: said, TODOS: _open_todos(span, standing)}
    found = [
        AskedSection(one.name, title(one.name), one.state)
        for one in presence(summary, form_of(summary))
    ]
    for name, wanted in counts.items():
        quoted = lines.quote if name == MESSAGES else lines.say
        stated = sum(lines.say(one) or quoted(one) for one in wanted)
        place = next((i for i, part in enumerate(found) if part.name == name), None)
        if place is not None:
            part = found[place]
            found[place] = AskedSection(name, part.title, part.state, stated, len(wanted))
        elif wanted:
            found.append(AskedSection(name, title(name), "unasked", stated, len(wanted)))
    return found


def _open_todos(span: Sequence[Block], standing: Sequence[Block]) -> list[str]:
    """Return the open items of the newest list, whether it was replaced or not."""
    todo = newest_todo(sorted([*span, *standing], key=lambda b: b.position))
    return [line.removesuffix(" (in progress)") for line in todo.open] if todo else []
