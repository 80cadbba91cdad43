"""Mask secrets and personal data before a text goes to a summarizer or leaves the machine.

Best effort: not everything is found (docs/policies/strategies.md lists what is).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from compaction.context.blocks import Block
from compaction.proposals.plan import Span
from compaction.redaction.rules import GROUPS, PRIVATE_KEY, MaskKind, compiled
from compaction.redaction.team_rules import TeamRule, masked_by
from compaction.redaction.together import groups_in

LONGEST_KEY = 16_384
"""Bytes searched for the end of a private key."""

SHORT = 100
"""Code points of a text that is remembered if it has nothing to mask: names come often."""

NUMBERS = 100_000_000
"""Masks with a key have numbers below this: two secrets of a kind share one by chance only."""

ROUNDS = 4
"""Maximum passes over a text (our choice): masking one secret can reveal another next to it."""

ALL = range(len(GROUPS))
"""Every group of rules."""
_ranks = count(1)
_RANKED = [[(next(_ranks), rule) for rule in group] for group in GROUPS]

_KEY_BODY = (
    rb"(?:(?:\\+[nr]|\s){1,4}[ \t0-9>|+:-]{0,12}(?:\xe2\x86\x92)?\\?t?[\"' ]{0,3}"
    rb"[A-Za-z0-9+/=]{16,}[\"' +]{0,4})+"
)
_KEY_LINE = rb"[A-Za-z0-9+/=]{40}"
_KNOWN = re.compile(r"\[([A-Z_]{3,12})_(\d{1,9})\]")


class _Match(NamedTuple):
    """A range of bytes to mask; `rank` is the index of its rule, the most specific first."""

    start: int
    end: int
    rank: int
    kind: MaskKind


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text with its secrets masked, and the number masked of each kind."""

    text: str
    masked: Mapping[str, int]


def redact(text: str, rules: Sequence[TeamRule] = ()) -> Redacted:
    """Mask one text, in time linear in its length; `rules` are the team's own."""
    masker = Masker(rules)
    return Redacted(masker.mask(text), dict(masker.masked))


@dataclass(slots=True)
class Masker:
    """Mask texts that belong together: equal secrets get equal masks such as [EMAIL_1].

    `rules` are the team's own and come first. `masked` counts places by kind, or by the name of a
    team's rule. Numbers that a text already uses, from an earlier masking, are not reused once
    `know` or `mask` has seen it. With a `key`, numbers follow from the secrets: the same mask for
    the same secret, whatever was masked before.
    """

    rules: Sequence[TeamRule] = ()
    key: bytes = b""
    masked: dict[str, int] = field(default_factory=dict)
    _names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    _highest: dict[str, int] = field(default_factory=dict)
    _clean: set[str] = field(default_factory=set)
    _groups: Mapping[str, Collection[int]] = field(default_factory=dict)

    def search(self, texts: Iterable[str]) -> set[str]:
        """Search texts that are masked next, all at once: the same masks, several times faster.
        Return those that `mask` must see: the others have nothing to mask."""
        texts = list(texts)
        found = groups_in(texts)
        for text, groups in found.items():
            if groups and not secrets(text.encode("utf-8", "surrogatepass"), groups):
                found[text] = ()
        self._groups = found
        return {
            text
            for text, groups in found.items()
            if groups or _KNOWN.search(text) or any(rule.is_in(text) for rule in self.rules)
        }

    def know(self, text: str) -> None:
        """Reserve the masks that a text already contains."""
        for kind, number in _KNOWN.findall(text):
            self._highest[kind] = max(self._highest.get(kind, 0), int(number))

    def mask(self, text: str, *, is_form: bool = False) -> str:
        """Return the text with masks; everything else stays byte for byte.

        A text that programs read (`is_form`), such as a block's type, the team's rules leave.
        """
        if self.rules and not is_form:
            ruled = masked_by(self.rules, text, self.masked)
            return self._mask(ruled, self._groups.get(text, ALL) if ruled is text else ALL)
        return self._mask(text, self._groups.get(text, ALL))

    def _mask(self, text: str, groups: Collection[int]) -> str:
        if text in self._clean:
            return text
        if "[" in text:
            self.know(text)
        if not groups:
            return text
        data = before = text.encode("utf-8", "surrogatepass")
        for _ in range(ROUNDS):
            found = secrets(data, groups)
            if not found:
                break
            data, groups = self._replace(data, found), ALL
        if data is not before:
            return data.decode("utf-8", "surrogatepass")
        if len(text) <= SHORT:
            self._clean.add(text)
        return text

    def _replace(self, data: bytes, found: list[_Match]) -> bytes:
        parts, last = [], 0
        for one in found:
            parts += [data[last : one.start], self._name(one.kind, data[one.start : one.end])]
            last = one.end
        return b"".join([*parts, data[last:]])

    def _name(self, kind: MaskKind, value: bytes) -> bytes:
        self.masked[kind] = self.masked.get(kind, 0) + 1
        name = self._names.get((kind, value))
        if name is None:
            number = self._number(kind, value)
            name = self._names[kind, value] = f"[{kind}_{number}]"
        return name.encode()

    def _number(self, kind: MaskKind, value: bytes) -> int:
        if self.key:
            digest = hmac.digest(self.key, kind.encode() + b"\n" + value, hashlib.sha256)
            return int.from_bytes(digest[:8]) % NUMBERS
        self._highest[kind] = self._highest.get(kind, 0) + 1
        return self._highest[kind]


def secrets(data: bytes, groups: Collection[int] = ALL) -> list[_Match]:
    """Return the ranges to mask in UTF-8 bytes, in order, disjoint, on whole code points; only
    those that rules of some groups find. Private keys belong to the first group."""
    found = [*_private_keys(data)] if 0 in groups else []
    for rank, rule in (one for group in groups for one in _RANKED[group]):
        for match in compiled(rule.pattern).finditer(data):
            start, end = match.span(1)
            if data[start - 1 : start] == b"\\" and data[start : start + 1] in b"nrtbf":
                # A greedy pattern included the letter of an escape.
                start += 1
            if rule.passes(data, start, end):
                found.append(_Match(start, _code_point(data, end), rank, rule.kind))
    return _apart(sorted(found))


def _code_point(data: bytes, end: int) -> int:
    """Return the end of the code point in which a match ended."""
    while end < len(data) and 0x80 <= data[end] < 0xC0:
        end += 1
    return end


def _apart(found: list[_Match]) -> list[_Match]:
    """Merge overlapping ranges under the kind of the most specific rule."""
    apart: list[_Match] = []
    for one in found:
        if apart and one.start < apart[-1].end:
            last = apart[-1]
            best = min(last, one, key=lambda f: f.rank)
            apart[-1] = _Match(last.start, max(last.end, one.end), best.rank, best.kind)
        else:
            apart.append(one)
    return apart


def _private_keys(data: bytes) -> Iterator[_Match]:
    """Yield private keys to their last line, or to the end of a truncated one.

    A first line without a key after it is not a secret: programs that read keys contain it.
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
        yield _Match(start, last, 0, "PRIVATE_KEY")


def mask_span(span: Span, rules: Sequence[TeamRule] = ()) -> tuple[Span, dict[str, int]]:
    """Mask the texts of a span for a summarizer, and return the counts by kind.

    Equal texts are masked once; a secret in both a block and its original counts once.
    """
    masker = Masker(rules)
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
