"""A session's own instructions for summaries: a heading in a memory file or system prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

from compaction.context.blocks import Block

HEADINGS = ("compact instructions", "compaction instructions", "summary instructions")
"""Headings whose text is passed on to the summarizer (Claude Code, CodeGenius)."""

LONGEST = 4_000
"""Maximum code points passed on (our choice)."""

LOOK_AT = 400_000
"""Code points of a block searched for headings."""

_WIDEST = 80
"""Code points of a heading; longer lines are prose or comments."""
_AFTER = " \t\r#:"

_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S.*)$", re.MULTILINE)


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
    found_all = _HEADING.finditer(text)
    headings = [one for one in found_all if len(one.group(2).rstrip(_AFTER)) <= _WIDEST]
    for number, heading in enumerate(headings):
        if heading.group(2).rstrip(_AFTER).casefold() not in HEADINGS:
            continue
        level = len(heading.group(1))
        later = islice(headings, number + 1, None)
        end = next((h.start() for h in later if len(h.group(1)) <= level), len(text))
        body = text[heading.end() : end].strip()[:LONGEST]
        if body:
            found.append(body)
    return found
