"""Check that a summary's quotations occur word for word in its source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compaction.context.blocks import Block
from compaction.facts.facts import texts_of
from compaction.proposals.plan import Span
from compaction.summaries.model.supported import plain

SHORTEST = 8
"""Minimum code points of a quotation that counts (our choice)."""

_QUOTED = re.compile(r"“([^“”]+)”|\"([^\"]+)\"|«([^«»]+)»|„([^„“]+)“|「([^「」]+)」")


def quotes(text: str) -> list[str]:
    """Return the texts between quotation marks, with entities decoded."""
    return [next(filter(None, match)).strip() for match in _QUOTED.findall(plain(text))]


def verbatim(lines: Sequence[str], span: Span) -> list[str]:
    """Return a next step as far as it is quoted word for word; empty without a quotation.

    Blanks may differ, and a quotation may end in an ellipsis. The source must be a person's or the
    agent's text, not a tool result.
    """
    said = [*span.originals, *span.blocks, *span.kept]
    source = " ".join(_flat(text) for text in _texts(said))
    source += " " + _flat(plain(span.previous or ""))
    found = [quote for line in lines for quote in quotes(line)]
    held = [len(quote) >= SHORTEST and _flat(quote.rstrip(".… ")) in source for quote in found]
    return list(lines) if held and all(held) else []


def _texts(blocks: Iterable[Block]) -> Iterable[str]:
    for block in blocks:
        if block.type != "tool_result":
            yield from texts_of(block)


def _flat(text: str) -> str:
    return " ".join(text.split())
