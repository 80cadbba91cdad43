"""Images on their way round a summarizer: taken out before, put back at their place after.

Dakou's rule. A text that stands for an image is long where it holds the bytes, and no model writes
it again without fault: the summarizer sees `[image 3]` and may say where it belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compaction.context import Block
from compaction.plan import Span
from compaction.stubs import reference

LONGEST = 300
"""Code points up to which what stood for an image is put back as it was; else a reference is."""

_IMAGE = re.compile(
    r"\[image(?: [a-z0-9/+.-]{1,60})?(?:, ref [^\]\s]{1,200})?\]"
    r"|!\[[^\]\n]{0,200}\]\([^)\s]{1,400}\)"
    r"|data:image/[a-z0-9.+-]{1,40};base64,[A-Za-z0-9+/=]{16,}",
    re.IGNORECASE,
)
_KIND = re.compile(r"data:(image/[a-z0-9.+-]+)", re.IGNORECASE)
_MARK = re.compile(r"\[image (\d{1,6})\]")


def take_out(span: Span) -> tuple[Span, Mapping[int, str]]:
    """A span with numbers in place of its images, and by number what is put back for each.

    Equal images have equal numbers. An image of a message is put back with the reference by which
    its original is read.
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
    """A summary with its images again; a number that nothing stands for goes."""
    return _MARK.sub(lambda match: images.get(int(match.group(1)), ""), summary)


def references(summary: str) -> list[str]:
    """The references of the images that stand in a summary."""
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
