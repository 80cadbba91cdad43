"""Compare two contexts of a session by their entries, without comparing texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Op = Literal["same", "removed", "added", "replaced"]


@dataclass(slots=True)
class DiffRow:
    """Consecutive entries with the same operation: their places in the manifest and their tokens.

    `revision` is the one that removed or added the entries (0: none); `of` names the side it
    belongs to. A `replaced` row holds an entry of context a and the entry at its position in
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


def diff(columns: Columns, a: int, b: int, scaled: Scaled) -> list[DiffRow]:
    """Return the rows that turn the context at step a into the one at step b.

    `columns` are those of a manifest (`position`, `from`, `to`, `kind`, `tokens`, `edit`, `closed`,
    one item per entry in context order); `scaled` converts stored tokens to the session's counting.
    Linear in the entries.
    """
    return _joined(_fates(columns, a, b, scaled))


def _joined(fates: Iterable[DiffRow]) -> list[DiffRow]:
    """Merge neighboring rows of the same operation."""
    rows: list[DiffRow] = []
    last = None
    for fate in fates:
        if last is not None and fate.op != "replaced" and _kept_by(last) == _kept_by(fate):
            last.a += fate.a
            last.b += fate.b
            last.tokens_a += fate.tokens_a
            last.tokens_b += fate.tokens_b
        else:
            rows.append(fate)
            last = fate
    return rows


def _kept_by(row: DiffRow) -> tuple[str, int, int, str]:
    return row.op, row.kind, row.revision, row.of


_READ = ("position", "from", "to", "kind", "tokens", "edit", "closed")


def _fates(columns: Columns, a: int, b: int, scaled: Scaled) -> Iterable[DiffRow]:
    """Make one row per entry in either context; entries at the same position share a row."""
    waiting: dict[int, DiffRow] = {}
    order: list[DiffRow] = []
    entries = zip(*map(columns.__getitem__, _READ), strict=True)
    for i, (position, start, end, kind, tokens, opened, closed) in enumerate(entries):
        in_a = start <= a and (not end or a < end)
        if start <= b and (not end or b < end):
            size = scaled(tokens)
            if in_a:
                order.append(DiffRow("same", kind, 0, [i], [i], size, size))
            elif (partner := waiting.pop(position, None)) is None:
                order.append(DiffRow("added", kind, opened, [], [i], 0, size))
            else:
                partner.op, partner.kind = "replaced", kind
                partner.b, partner.tokens_b = [i], size
                partner.revision = opened or partner.revision
        elif in_a:
            waiting[position] = DiffRow("removed", kind, closed, [i], [], scaled(tokens))
            order.append(waiting[position])
    return order


# Two managed versions of one session


@dataclass(frozen=True, slots=True)
class StepContext:
    """The context of one step: the columns of its manifest, `flags` included.

    `texts` identifies the text of each replacement, by position and by the revision that made it.
    """

    columns: Columns
    step: int
    replacement: int
    """The bit of `flags` that marks a replacement."""
    texts: Mapping[tuple[int, int], str]


def across(a: StepContext, b: StepContext, scaled: Scaled) -> list[DiffRow]:
    """Return the rows that turn the context of one run into that of another of the same session.

    An original counts as the same if both contexts have it, and so does a replacement with the same
    text. What only a has was removed by b's run (`of` b) or has not arrived there yet; what only b
    has was removed by a's run (`of` a) unless b's run made it. Linear in the entries.
    """
    left, right = _standing(a), _standing(b)
    opened = _taken_out(a), _taken_out(b)
    fates = (
        fate
        for position in sorted(left.keys() | right.keys())
        for fate in _at(position, (a, left.get(position, [])), (b, right.get(position, [])), opened)
    )
    return _joined(_sized(fates, a, b, scaled))


def _sized(
    fates: Iterable[DiffRow], a: StepContext, b: StepContext, scaled: Scaled
) -> Iterator[DiffRow]:
    """Count the tokens of rows that have at most one entry of each context."""
    for fate in fates:
        fate.tokens_a = scaled(a.columns["tokens"][fate.a[0]]) if fate.a else 0
        fate.tokens_b = scaled(b.columns["tokens"][fate.b[0]]) if fate.b else 0
        yield fate


Side = tuple[StepContext, list[int]]


def _standing(of: StepContext) -> dict[int, list[int]]:
    """Map each position to the indexes of its entries that are in the context."""
    columns, found = of.columns, dict[int, list[int]]()
    step = of.step
    triples = zip(columns["position"], columns["from"], columns["to"], strict=True)
    for i, (position, start, end) in enumerate(triples):
        if start <= step and (not end or step < end):
            found.setdefault(position, []).append(i)
    return found


def _taken_out(of: StepContext) -> dict[int, int]:
    """Map each position to the revision that removed its entry before the step."""
    columns = of.columns
    triples = zip(columns["position"], columns["to"], columns["closed"], strict=True)
    return {position: closed for position, end, closed in triples if closed and end <= of.step}


def _says(of: StepContext, i: int) -> str:
    """Identify an entry among those at its position: empty for the original."""
    columns = of.columns
    if not columns["flags"][i] & of.replacement:
        return ""
    return of.texts.get((columns["position"][i], columns["edit"][i]), f"entry {i}")


def _at(
    position: int, left: Side, right: Side, taken_out: tuple[dict[int, int], dict[int, int]]
) -> Iterator[DiffRow]:
    """Yield the rows for one position."""
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
    """Return the revision that caused the difference, and its side."""
    return (in_b, "b") if in_b or not in_a else (in_a, "a")
