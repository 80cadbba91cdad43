"""Replace images by numbers before a summarizer sees them, and restore them after.

Dakou's rule. An image text can be long (it may hold the bytes), and no model copies it reliably:
the summarizer sees `[image 3]` and may keep it in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compaction.context.blocks import Block
from compaction.context.stubs import reference
from compaction.proposals.plan import Span

LONGEST = 300
"""Code points up to which an image text is restored as it was; longer ones become a reference."""

_IMAGE = re.compile(
    r"\[image(?: [a-z0-9/+.-]{1,60})?(?:, ref [^\]\s]{1,200})?\]"
    r"|!\[[^\[\]\n]{0,200}\]\([^()\s]{1,400}\)"
    r"|data:image/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]{16,}",
    re.IGNORECASE,
)
_KIND = re.compile(r"data:(image/[a-z0-9.+-]+)", re.IGNORECASE)
_MARK = re.compile(r"\[image (\d{1,6})\]")


def take_out(span: Span) -> tuple[Span, Mapping[int, str]]:
    """Replace the images of a span by numbers, and return what to restore for each number.

    Equal images have equal numbers. An image of a message is restored with a reference to its
    original.
    """
    taken = _Taken()
    clean = replace(
        span,
        blocks=tuple(taken.block(block) for block in span.blocks),
        originals=tuple(taken.block(block) for block in span.originals),
        kept=tuple(taken.block(block) for block in span.kept),
        previous=None if span.previous is None else taken.text(span.previous, None),
    )
    return clean, taken.images


def put_back(summary: str, images: Mapping[int, str]) -> str:
    """Restore the images of a summary; unknown numbers are removed."""
    return _MARK.sub(lambda match: images.get(int(match.group(1)), ""), summary)


def references(summary: str) -> list[str]:
    """Return the references of the images in a summary."""
    found = (re.search(r", ref ([^\]\s]+)\]", match.group()) for match in _IMAGE.finditer(summary))
    return [match.group(1) for match in found if match is not None]


@dataclass(slots=True)
class _Taken:
    images: dict[int, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def block(self, block: Block) -> Block:
        text = self.text(block.text, block)
        return block if text is block.text or text == block.text else replace(block, text=text)

    def text(self, text: str, block: Block | None) -> str:
        return _IMAGE.sub(lambda match: self._number(match.group(), block), text)

    def _number(self, found: str, block: Block | None) -> str:
        back = found
        ref = f", ref {reference(block)}" if block is not None else ""
        if block is not None and block.type == "image":
            back = f"{found[:-1]}{ref}]"
        elif len(found) > LONGEST:
            kind = _KIND.match(found)
            back = f"[image {kind.group(1)}{ref}]" if kind is not None else f"[image{ref}]"
        number = self._numbers.setdefault(back, len(self._numbers) + 1)
        self.images[number] = back
        return f"[image {number}]"
