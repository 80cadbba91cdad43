"""Two contexts of one run against each other, by what stands in both: no text is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Op = Literal["same", "removed", "added", "replaced"]


@dataclass(slots=True)
class DiffRow:
    """Consecutive entries that had the same fate: their places in the manifest, their tokens.

    `revision` is the one that took the entries out or brought them in (0: none). A `replaced` row
    holds an entry of context a and what stands in its position in context b.
    """

    op: Op
    kind: int
    revision: int
    a: list[int] = field(default_factory=list)
    b: list[int] = field(default_factory=list)
    tokens_a: int = 0
    tokens_b: int = 0


def _stands(start: int, end: int, step: int) -> bool:
    return start <= step and (end == 0 or step < end)


def diff(
    columns: Mapping[str, Sequence[int]], a: int, b: int, scaled: Callable[[int], int]
) -> list[DiffRow]:
    """Rows that turn the context at step a into the one at step b; linear in the entries.

    `columns` are those of a manifest (`position`, `from`, `to`, `kind`, `tokens`, `edit`,
    `closed`, one item per entry in context order); `scaled` brings stored tokens into the
    session's counting.
    """
    rows: list[DiffRow] = []
    for fate in _fates(columns, a, b):
        last = rows[-1] if rows else None
        if (
            last is not None
            and fate.op != "replaced"
            and (last.op, last.kind, last.revision) == (fate.op, fate.kind, fate.revision)
        ):
            last.a += fate.a
            last.b += fate.b
        else:
            rows.append(fate)
            last = fate
    tokens = columns["tokens"]
    for row in rows:
        row.tokens_a = sum(scaled(tokens[i]) for i in row.a)
        row.tokens_b = sum(scaled(tokens[i]) for i in row.b)
    return rows


def _fates(columns: Mapping[str, Sequence[int]], a: int, b: int) -> Iterator[DiffRow]:
    """One row per entry that stands in either context; pairs at one position come together."""
    waiting: dict[int, DiffRow] = {}
    order: list[DiffRow] = []
    for i, (position, start, end, kind, opened, closed) in enumerate(
        zip(
            columns["position"],
            columns["from"],
            columns["to"],
            columns["kind"],
            columns["edit"],
            columns["closed"],
            strict=True,
        )
    ):
        in_a, in_b = _stands(start, end, a), _stands(start, end, b)
        if in_a and in_b:
            order.append(DiffRow("same", kind, 0, [i], [i]))
        elif in_a:
            row = DiffRow("removed", kind, closed, [i])
            waiting[position] = row
            order.append(row)
        elif in_b:
            partner = waiting.pop(position, None)
            if partner is None:
                order.append(DiffRow("added", kind, opened, [], [i]))
            else:
                partner.op, partner.kind = "replaced", kind
                partner.b = [i]
                partner.revision = opened or partner.revision
    yield from order
