"""Tokens by kind at every step of a run, from the intervals of its entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from compaction.context import KINDS


def by_step(columns: Mapping[str, Sequence[int]], steps: int) -> list[list[int]]:
    """For each kind (in the order of KINDS) the tokens standing at steps 1 … `steps`.

    `columns` are those of a manifest; an entry stands at step N where from <= N and (to = 0 or
    N < to). Linear in entries and steps.
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
    """Tokens of all kinds together, step by step."""
    return [sum(column) for column in zip(*table, strict=True)]


def sampled(table: Sequence[Sequence[int]], columns: int) -> list[list[int]]:
    """At most so many steps of a table, evenly spaced, the fullest step among them; each a list
    of tokens by kind."""
    steps = len(table[0]) if table else 0
    if not steps:
        return []
    whole = totals(table)
    fullest = max(range(steps), key=whole.__getitem__)
    return [[row[step] for row in table] for step in places(steps, columns, fullest)]


def places(steps: int, columns: int, fullest: int) -> list[int]:
    """Indexes of at most so many of `steps` steps, evenly spaced, the fullest among them."""
    if steps <= columns:
        return list(range(steps))
    picked = [round(i * (steps - 1) / (columns - 1)) for i in range(columns)]
    nearest = min(range(columns), key=lambda i: abs(picked[i] - fullest))
    picked[nearest] = fullest
    return picked
