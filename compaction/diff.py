"""Two contexts of a session against each other, by what stands in both: no text is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Op = Literal["same", "removed", "added", "replaced"]


@dataclass(slots=True)
class DiffRow:
    """Consecutive entries that had the same fate: their places in the manifest, their tokens.

    `revision` is the one that took the entries out or brought them in (0: none), of the run on the
    side `of`. A `replaced` row holds an entry of context a and what stands in its position in
    context b.
    """

    op: Op
    kind: int
    revision: int
    a: list[int] = field(default_factory=list)
    b: list[int] = field(default_factory=list)
    tokens_a: int = 0
    tokens_b: int = 0
    of: Literal["a", "b"] = "b"


Columns = Mapping[str, Sequence[int]]
Scaled = Callable[[int], int]


def _stands(start: int, end: int, step: int) -> bool:
    return start <= step and (end == 0 or step < end)


def diff(columns: Columns, a: int, b: int, scaled: Scaled) -> list[DiffRow]:
    """Rows that turn the context at step a into the one at step b; linear in the entries.

    `columns` are those of a manifest (`position`, `from`, `to`, `kind`, `tokens`, `edit`,
    `closed`, one item per entry in context order); `scaled` brings stored tokens into the
    session's counting.
    """
    return _joined(_fates(columns, a, b), columns, columns, scaled)


def _joined(fates: Iterable[DiffRow], a: Columns, b: Columns, scaled: Scaled) -> list[DiffRow]:
    """Neighbours of one fate as one row, with their tokens."""
    rows: list[DiffRow] = []
    for fate in fates:
        last = rows[-1] if rows else None
        if last is not None and fate.op != "replaced" and _kept_by(last) == _kept_by(fate):
            last.a += fate.a
            last.b += fate.b
        else:
            rows.append(fate)
    for row in rows:
        row.tokens_a = sum(scaled(a["tokens"][i]) for i in row.a)
        row.tokens_b = sum(scaled(b["tokens"][i]) for i in row.b)
    return rows


def _kept_by(row: DiffRow) -> tuple[str, int, int, str]:
    return row.op, row.kind, row.revision, row.of


def _fates(columns: Columns, a: int, b: int) -> Iterator[DiffRow]:
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


# Two runs


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one step of one run: the columns of its manifest, `flags` included.

    `texts` names what replacements say, by position and by the revision that opened them.
    """

    columns: Columns
    step: int
    replacement: int
    """The bit of `flags` that marks one."""
    texts: Mapping[tuple[int, int], str]


def across(a: Context, b: Context, scaled: Scaled) -> list[DiffRow]:
    """Rows that turn the context of one run into that of another of the same session; linear.

    An original stands in both where both have it; so does a replacement of the same text. What
    only a has, b's run took out (`of` b), or has not got to yet; what only b has, a's run took out
    (`of` a) unless b's run made it.
    """
    left, right = _standing(a), _standing(b)
    positions = sorted(left.keys() | right.keys())
    opened = _taken_out(a), _taken_out(b)
    fates = (
        fate
        for position in positions
        for fate in _at(position, (a, left.get(position, [])), (b, right.get(position, [])), opened)
    )
    return _joined(fates, a.columns, b.columns, scaled)


Side = tuple[Context, list[int]]


def _standing(of: Context) -> dict[int, list[int]]:
    """Places of the entries that stand, by position."""
    columns, found = of.columns, dict[int, list[int]]()
    triples = zip(columns["position"], columns["from"], columns["to"], strict=True)
    for i, (position, start, end) in enumerate(triples):
        if _stands(start, end, of.step):
            found.setdefault(position, []).append(i)
    return found


def _taken_out(of: Context) -> dict[int, int]:
    """By position the revision that took out what stood there before the step."""
    columns = of.columns
    triples = zip(columns["position"], columns["to"], columns["closed"], strict=True)
    return {position: closed for position, end, closed in triples if closed and end <= of.step}


def _says(of: Context, i: int) -> str:
    """What tells an entry from others at its position: empty for the original."""
    columns = of.columns
    if not columns["flags"][i] & of.replacement:
        return ""
    return of.texts.get((columns["position"][i], columns["edit"][i]), f"entry {i}")


def _at(
    position: int, left: Side, right: Side, taken_out: tuple[dict[int, int], dict[int, int]]
) -> Iterator[DiffRow]:
    """The fates of what stands at one position on either side."""
    (a, here), (b, there) = left, right
    there = list(there)
    for i in here:
        kind = a.columns["kind"][i]
        same = next((j for j in there if _says(b, j) == _says(a, i)), None)
        if same is not None:
            there.remove(same)
            yield DiffRow("same", kind, 0, [i], [same])
        elif there:
            j = there.pop(0)
            kind, revision = b.columns["kind"][j], b.columns["edit"][j]
            made = _made(revision, a.columns["edit"][i])
            yield DiffRow("replaced", kind, made[0], [i], [j], of=made[1])
        else:
            yield DiffRow("removed", kind, taken_out[1].get(position, 0), [i])
    for j in there:
        revision = b.columns["edit"][j]
        made = _made(revision, taken_out[0].get(position, 0))
        yield DiffRow("added", b.columns["kind"][j], made[0], [], [j], of=made[1])


def _made(in_b: int, in_a: int) -> tuple[int, Literal["a", "b"]]:
    """The revision that made the difference, and of which side it is."""
    return (in_b, "b") if in_b or not in_a else (in_a, "a")
