"""Verdicts: what an event came to, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["good", "bad", "neutral"]

UNREPAIRED = ", without a repair (no extra cost found)"
"""Ends a sentence about lost facts that were used again while no call was made to obtain them."""


@dataclass(frozen=True, slots=True)
class EventVerdict:
    """One sentence on what an event came to, its tone, and what stands behind it in at most two
    more; `detail` may be empty."""

    tone: Tone
    sentence: str
    detail: str = ""


def counted(count: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 file, 1,204 files."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def listed(parts: Sequence[str]) -> str:
    """Parts as a list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
