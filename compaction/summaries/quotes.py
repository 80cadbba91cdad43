"""Whether what a summary quotes stands in its source word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compaction.context import Block
from compaction.facts.facts import texts_of
from compaction.plan import Span
from compaction.summaries.supported import plain

SHORTEST = 8
"""Code points below which a quotation shows nothing (ours)."""

_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|«([^»]+)»|„([^“]+)“|「([^」]+)」")


def quotes(text: str) -> list[str]:
    """What stands between quotation marks in a text, with its entities undone."""
    return [next(filter(None, match)).strip() for match in _QUOTED.findall(plain(text))]


def verbatim(lines: Sequence[str], span: Span) -> list[str]:
    """A next step as far as it is quoted word for word; nothing where no quotation is.

    Blanks may differ, and a quotation may end in an ellipsis. What asks for a step has been said by
    a person or by the agent, not by a tool.
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
