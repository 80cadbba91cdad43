"""Tokens by kind at every step of a session, from the intervals of its entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from compaction.context.blocks import KINDS


def by_step(columns: Mapping[str, Sequence[int]], steps: int) -> list[list[int]]:
    """Return, for each kind (in the order of KINDS), the tokens at steps 1 … `steps`.

    `columns` are those of a manifest; an entry is in the context of step N where from <= N and (to
    = 0 or N < to). Linear in entries and steps.
    """
    changes = [[0] * (steps + 2) for _ in KINDS]
    for kind, tokens, start, end in zip(
        columns["kind"], columns["tokens"], columns["from"], columns["to"], strict=True
    ):
        if start > steps:
            continue
        changes[kind][max(start, 1)] += tokens
        if 0 < end <= steps:
            changes[kind][max(end, 1)] -= tokens
    return [list(accumulate(row[1 : steps + 1])) for row in changes]


def totals(table: Sequence[Sequence[int]]) -> list[int]:
    """Add up the tokens of all kinds, step by step."""
    return [sum(column) for column in zip(*table, strict=True)]


def places(steps: int, columns: int, fullest: int) -> list[int]:
    """Pick at most `columns` of `steps` indexes, evenly spaced, and always the fullest."""
    if steps <= columns:
        return list(range(steps))
    picked = [round(i * (steps - 1) / (columns - 1)) for i in range(columns)]
    nearest = min(range(columns), key=lambda i: abs(picked[i] - fullest))
    picked[nearest] = fullest
    return picked
