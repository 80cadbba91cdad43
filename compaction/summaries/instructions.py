"""A session's own instructions for summaries: a heading in a memory file or system prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction.context.blocks import Block

HEADINGS = ("compact instructions", "compaction instructions", "summary instructions")
"""Headings whose text is passed on to the summarizer (Claude Code, CodeGenius)."""

LONGEST = 4_000
"""Maximum code points passed on (our choice)."""

LOOK_AT = 400_000
"""Code points of a block searched for headings."""

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.{1,80}?)[ \t#:]*$", re.MULTILINE)


def given_in(blocks: Iterable[Block]) -> list[str]:
    """Return the texts below such headings, in context order, without repeats.

    Only memory files and the system prompt are read: the same heading in a tool result or a pasted
    text is not an instruction.
    """
    found: dict[str, None] = {}
    for block in blocks:
        if block.kind not in ("memory", "system"):
            continue
        for text in _sections(block.text[:LOOK_AT]):
            found.setdefault(text)
    return list(found)


def _sections(text: str) -> list[str]:
    found = []
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if heading.group(2).strip().casefold() not in HEADINGS:
            continue
        level = len(heading.group(1))
        later = headings[number + 1 :]
        end = next((h.start() for h in later if len(h.group(1)) <= level), len(text))
        body = text[heading.end() : end].strip()[:LONGEST]
        if body:
            found.append(body)
    return found
