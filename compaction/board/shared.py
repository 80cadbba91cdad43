"""What shares rest on, as their receiver reads it: boards, and results by reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from compaction.board.board import HEAD, TAIL, plain, shortened
from compaction.proposals.plan import Count

SHARES, RESULTS, NOTES = 5, 4, 12
"""Most shares, and most results and notes of each (our choice); its own reference leads to the
others."""

LEAST = 12
"""Tokens below which nothing fits (our choice)."""

MARK = "[What this rests on: notes as they were shared, and results. Read them by reference.]"

_NOTE = re.compile(r"\n(?=<(?:task|plan|agent|knowledge|task_done_summary)[ >])")


@dataclass(frozen=True, slots=True)
class Shared:
    """A share as its receiver reads it.

    `ref` leads to all of it. `board` is a rendered board, or empty; `results` are references with
    what they are, most relevant first.
    """

    ref: str
    agent: str
    board: str
    results: tuple[tuple[str, str], ...] = ()


def rests_on(shares: Sequence[Shared], most: int, count: Count) -> str:
    """Render what shares rest on, in at most `most` tokens; the newest come first.

    Every share names results before one shows notes, the task first and then the newest.
    References are never cut. Deterministic, and empty if not even a reference fits.
    """
    room = most - count(f"{MARK}\n")
    chosen: dict[int, dict[int, str]] = {}
    for place, line, number in _candidates(shares[:SHARES]):
        if room < LEAST:
            break
        cost = count(f"{line}\n") + 1
        if number and place not in chosen:
            continue
        if not number:
            cost += count("</share>\n") + 1
        if cost <= room:
            room -= cost
            chosen.setdefault(place, {})[number] = line
    text = _written(chosen)
    # Lines were counted one by one; the count of the whole text decides.
    while chosen and count(text) > most:
        chosen.popitem()
        text = _written(chosen)
    return text


def _candidates(shares: Sequence[Shared]) -> Iterator[tuple[int, str, int]]:
    """Yield lines in order of value: the share, the line, and its place within the share."""
    for place, share in enumerate(shares):
        by = f' from="{_attribute(share.agent)}"' if share.agent else ""
        yield place, f'<share ref="{_attribute(share.ref)}"{by}>', 0
        for number, (ref, about) in enumerate(share.results[:RESULTS], 1):
            words = escape(shortened(" ".join(plain(about).split()), 80), quote=False)
            yield place, f'<result ref="{_attribute(ref)}">{words}</result>', number
    for place, share in enumerate(shares):
        notes = notes_in(share.board)
        newest = range(len(notes) - 1, max(len(notes) - NOTES, 0), -1)
        for number in [0, *newest] if notes else []:
            yield place, notes[number], RESULTS + 1 + number


def _written(chosen: dict[int, dict[int, str]]) -> str:
    lines = [MARK] if chosen else []
    for place in sorted(chosen):
        lines += [chosen[place][number] for number in sorted(chosen[place])]
        lines.append("</share>")
    return "\n".join(lines)


def notes_in(board: str) -> list[str]:
    """Split a rendered board into its notes, the task first."""
    inner = board.removeprefix(HEAD).removesuffix(TAIL).strip("\n")
    return _NOTE.split(inner) if inner else []


def _attribute(text: str) -> str:
    return escape(" ".join(plain(text).split()))
