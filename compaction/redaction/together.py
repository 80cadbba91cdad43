"""Search many texts at once: most have nothing to mask, and one search costs less than many."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from compaction.redaction.rules import GROUPS, any_of

Given = TypeVar("Given")
Made = TypeVar("Made")

APART = b"\n" * 10
"""Between texts: no pattern matches across more than 8 line breaks."""

AT_ONCE = 500_000
"""Code points that are searched at once."""


class Masks(Protocol):
    """Something that masks texts."""

    def mask(self, text: str, *, is_form: bool = False) -> str:
        """Return the text with masks; see `Masker.mask`."""


class Searches(Masks, Protocol):
    """Something that masks texts faster if it may search many before."""

    def search(self, texts: Iterable[str]) -> set[str]:
        """Search texts that are masked next; return those that `mask` must see."""


class _TextsToMask:
    """Notes which texts are masked, and leaves them as they are."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mask(self, text: str, *, is_form: bool = False) -> str:  # noqa: ARG002
        self.texts.append(text)
        return text


def groups_in(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """By text, the groups of rules (indexes of `rules.GROUPS`) that match somewhere in it."""
    order = list(dict.fromkeys(texts))
    starts, parts, at = [], [], 0
    for text in order:
        starts.append(at)
        parts.append(text.encode("utf-8", "surrogatepass"))
        at += len(parts[-1]) + len(APART)
    data = APART.join(parts)
    found: dict[str, tuple[int, ...]] = dict.fromkeys(order, ())
    for group in range(len(GROUPS)):
        hit: set[int] = set()
        for match in any_of(group).finditer(data):
            start, end = match.span()
            hit.update(range(max(bisect_right(starts, start) - 1, 0), bisect_left(starts, end)))
        for index in sorted(hit):
            found[order[index]] += (group,)
    return found


def masked_in_order(
    masker: Searches, values: Iterable[Given], masked: Callable[[Masks, Given], Made]
) -> Iterator[Made]:
    """Mask values one after the other, as `masked` does, with the texts of many searched at once.

    `masked` must not depend on anything but what it is given, since it is called up to twice.
    """
    waiting: list[tuple[Given, Made, list[str]]] = []
    size = 0
    for value in values:
        met = _TextsToMask()
        waiting.append((value, masked(met, value), met.texts))
        size += sum(map(len, met.texts))
        if size >= AT_ONCE:
            yield from _masked(masker, waiting, masked)
            waiting, size = [], 0
    yield from _masked(masker, waiting, masked)


def _masked(
    masker: Searches,
    waiting: list[tuple[Given, Made, list[str]]],
    masked: Callable[[Masks, Given], Made],
) -> Iterator[Made]:
    found = masker.search(text for _, _, texts in waiting for text in texts)
    for value, unchanged, texts in waiting:
        yield unchanged if found.isdisjoint(texts) else masked(masker, value)
