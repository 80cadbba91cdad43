"""Secrets and personal data are masked before a text goes to a summarizer or leaves the machine.

Best effort: it does not find everything (docs/strategies.md says what it does find).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compaction.context import Block
from compaction.plan import Span
from compaction.redaction.rules import PRIVATE_KEY, RULES, MaskKind, compiled

LONGEST_KEY = 16_384
"""Bytes in which the end of a private key is looked for."""

ROUNDS = 4
"""How often a text is looked at (ours): what touched a secret may be known only without it."""

_KEY_BODY = (
    rb"(?:(?:\\+[nr]|\s){1,4}[ \t0-9>|+:-]{0,12}(?:\xe2\x86\x92)?\\?t?[\"' ]{0,3}"
    rb"[A-Za-z0-9+/=]{16,}[\"' +]{0,4})+"
)
_KEY_LINE = rb"[A-Za-z0-9+/=]{40}"
_KNOWN = re.compile(r"\[([A-Z_]{3,12})_(\d{1,9})\]")


class _Found(NamedTuple):
    """A stretch of bytes to be masked; `rank` is the place of its rule, the most specific first."""

    start: int
    end: int
    rank: int
    kind: MaskKind


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many of each kind were masked."""

    text: str
    masked: Mapping[str, int]


def redact(text: str) -> Redacted:
    """Mask one text. Time is linear in its length, whatever it holds."""
    masker = Masker()
    return Redacted(masker.mask(text), dict(masker.masked))


@dataclass(slots=True)
class Masker:
    """Masks texts that belong together: equal secrets get equal placeholders such as [EMAIL_1].

    `masked` counts places by kind. Numbers that a text already uses, from an earlier masking, are
    not given out again once `know` or `mask` has seen it.
    """

    masked: dict[str, int] = field(default_factory=dict)
    _names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    _highest: dict[str, int] = field(default_factory=dict)

    def know(self, text: str) -> None:
        """Keep clear of the placeholders in a text."""
        for kind, number in _KNOWN.findall(text):
            self._highest[kind] = max(self._highest.get(kind, 0), int(number))

    def mask(self, text: str) -> str:
        """The text with placeholders; what is no secret stays byte for byte."""
        self.know(text)
        data = before = text.encode("utf-8", "surrogatepass")
        for _ in range(ROUNDS):
            found = secrets(data)
            if not found:
                break
            data = self._replace(data, found)
        return text if data is before else data.decode("utf-8", "surrogatepass")

    def _replace(self, data: bytes, found: list[_Found]) -> bytes:
        parts, last = [], 0
        for one in found:
            parts += [data[last : one.start], self._name(one.kind, data[one.start : one.end])]
            last = one.end
        return b"".join([*parts, data[last:]])

    def _name(self, kind: MaskKind, value: bytes) -> bytes:
        self.masked[kind] = self.masked.get(kind, 0) + 1
        name = self._names.get((kind, value))
        if name is None:
            number = self._highest[kind] = self._highest.get(kind, 0) + 1
            name = self._names[kind, value] = f"[{kind}_{number}]"
        return name.encode()


def secrets(data: bytes) -> list[_Found]:
    """What is to be masked in UTF-8 bytes, in order and apart, on whole code points."""
    found = [*_private_keys(data)]
    for rank, rule in enumerate(RULES, 1):
        for match in compiled(rule.pattern).finditer(data):
            start, end = match.span(1)
            if data[start - 1 : start] == b"\\" and data[start : start + 1] in b"nrtbf":
                # The letter of an escape that a greedy pattern took for the beginning.
                start += 1
            if rule.passes(data, start, end):
                found.append(_Found(start, _code_point(data, end), rank, rule.kind))
    return _apart(sorted(found))


def _code_point(data: bytes, end: int) -> int:
    """The end of the code point in which a match ended."""
    while end < len(data) and 0x80 <= data[end] < 0xC0:
        end += 1
    return end


def _apart(found: list[_Found]) -> list[_Found]:
    """Overlapping stretches as one, under the kind of the most specific rule."""
    apart: list[_Found] = []
    for one in found:
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            best = min(last, one, key=lambda f: f.rank)
            apart[-1] = _Found(last.start, max(last.end, one.end), best.rank, best.kind)
        else:
            apart.append(one)
    return apart


def _private_keys(data: bytes) -> Iterator[_Found]:
    """Private keys to their last line, or as far as they go where that was cut off.

    A first line without a key behind it is no secret: programs that read keys have it.
    """
    last = 0
    for match in compiled(rb"(" + PRIVATE_KEY + rb")").finditer(data):
        start, end = match.span(1)
        if start < last:
            continue
        close = data.find(b"-----END", end, end + LONGEST_KEY)
        if close >= 0 and compiled(_KEY_LINE).search(data, end, close):
            dashes = data.find(b"-----", close + 8, close + 80)
            last = dashes + 5 if dashes >= 0 else close + 8
        elif body := compiled(_KEY_BODY).match(data, end):
            last = body.end()
        else:
            continue
        yield _Found(start, last, 0, "PRIVATE_KEY")


def mask_span(span: Span) -> tuple[Span, dict[str, int]]:
    """A span whose texts hold no secrets, as a summarizer is given it, and the counts by kind.

    Equal texts are masked once; what stood in blocks and in originals counts once.
    """
    masker = Masker()
    for text in (span.previous, span.instructions, span.board):
        masker.know(text or "")
    done: dict[str, str] = {}

    def clean(text: str) -> str:
        if text not in done:
            done[text] = masker.mask(text)
        return done[text]

    def blocks(given: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(replace(block, text=clean(block.text)) for block in given)

    masked = replace(
        span,
        blocks=blocks(span.blocks),
        originals=blocks(span.originals),
        kept=blocks(span.kept),
        previous=None if span.previous is None else clean(span.previous),
        instructions=clean(span.instructions),
        board=clean(span.board),
    )
    return masked, dict(masker.masked)
