"""Align the steps of two sessions by what the model did at each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.context.blocks import Block
from compaction.context.groups import failure_key

SIMILAR = 0.3
"""Least share of common words of two steps with the same tools that count as one (our choice)."""

READ_OF = 2_000
"""Code points of a text whose words are compared; exact equality looks at all of it."""

_WORD = re.compile(r"\w+(?!\w*\":)")
"""A word that is no name of an argument."""

AlignedOp = Literal["same", "reworded", "changed", "a", "b"]
"""`reworded`: other words without a call on either side; `a` and `b`: only in that session."""


@dataclass(frozen=True, slots=True)
class StepAction:
    """What the model did at a step: its calls in order, or else its words.

    `exact` is equal for equal tools and arguments, `operation` for the same tools on the same files
    or commands (empty for a step without calls), `tools` for the same tools.
    """

    step: int
    exact: tuple[str, ...]
    operation: tuple[str, ...]
    tools: tuple[str, ...]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class AlignedStep:
    """Two steps that answer each other, or one that only a session has; None on the other side."""

    op: AlignedOp
    a: int | None
    b: int | None


def actions(blocks: Iterable[Block]) -> list[StepAction]:
    """Return what the model did at each step, from its blocks with their texts, in order.

    The output of step k is born at k + 1. Steps without calls and words are left out.
    """
    outputs: dict[int, list[Block]] = {}
    for block in blocks:
        if block.role == "assistant" and block.type in ("tool_use", "text"):
            outputs.setdefault(max(block.born - 1, 1), []).append(block)
    return [_action(step, made) for step, made in sorted(outputs.items())]


def _action(step: int, made: Sequence[Block]) -> StepAction:
    calls = [block for block in made if block.type == "tool_use"]
    shown = calls or made
    return StepAction(
        step,
        tuple(f"{block.tool or ''} {_canonical(block)}" for block in shown),
        tuple(failure_key(block) for block in calls),
        tuple(block.tool or "" for block in calls),
        frozenset(word for block in shown for word in _WORD.findall(block.text[:READ_OF].lower())),
    )


def _canonical(block: Block) -> str:
    """Return a tool input with its keys in order, so that their order does not matter."""
    if block.type != "tool_use":
        return block.text.strip()
    try:
        return json.dumps(json.loads(block.text), sort_keys=True)
    except (ValueError, RecursionError):
        return block.text


def align(a: Sequence[StepAction], b: Sequence[StepAction]) -> list[AlignedStep]:
    """Return the steps of both sessions in order, paired where they did the same or nearly so.

    Equal steps are paired first, as many as possible in order; between these, steps with the same
    operation, and last those with the same tools and `SIMILAR` words. Work is len(a) * len(b) / 64
    machine operations at most, and as many bits of memory: 10,000 steps each take a second.
    """
    places = _paired(a, b, 0, 0, (_exact, _operation, _tools))
    return list(_rows(a, b, [*places, (len(a), len(b))]))


Key = Callable[[StepAction], Hashable]


def _exact(action: StepAction) -> Hashable:
    return action.exact


def _operation(action: StepAction) -> Hashable:
    return action.operation or None


def _tools(action: StepAction) -> Hashable:
    return action.tools


def _paired(
    a: Sequence[StepAction], b: Sequence[StepAction], i: int, j: int, keys: Sequence[Key]
) -> list[tuple[int, int]]:
    """Return pairs of places by the first key, and between these by the next ones."""
    if not a or not b or not keys:
        return []
    found = _common([keys[0](one) for one in a], [keys[0](one) for one in b])
    if keys[0] is _tools:
        return [(i + x, j + y) for x, y in found if _similar(a[x], b[y])]
    pairs: list[tuple[int, int]] = []
    last = (0, 0)
    for x, y in [*found, (len(a), len(b))]:
        pairs += _paired(a[last[0] : x], b[last[1] : y], i + last[0], j + last[1], keys[1:])
        if x < len(a):
            pairs.append((i + x, j + y))
        last = (x + 1, y + 1)
    return pairs


def _similar(one: StepAction, other: StepAction) -> bool:
    both = len(one.words | other.words)
    return not both or len(one.words & other.words) >= SIMILAR * both


def _common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence; None equals nothing.

    Common beginnings are paired first. Bit-parallel (Hyyrö 2004): a row of the table is one
    integer, whose bit j is 0 where b[j] makes the subsequence longer.
    """
    begin, most = 0, min(len(a), len(b))
    while begin < most and a[begin] is not None and a[begin] == b[begin]:
        begin += 1
    there: dict[Hashable, int] = {}
    for place, key in enumerate(b[begin:]):
        if key is not None:
            there[key] = there.get(key, 0) | 1 << place
    width = len(b) - begin
    full = (1 << width) - 1
    rows = [full]
    for key in a[begin:]:
        row, matched = rows[-1], there.get(key, 0)
        use = row & matched
        rows.append(((row + use) | (row - use)) & full)
    found = []
    x, y = len(a) - begin, width
    while x and y:
        if rows[x] >> (y - 1) & 1:
            y -= 1
        elif x > 1 and not rows[x - 1] >> (y - 1) & 1:
            x -= 1
        else:
            x, y = x - 1, y - 1
            found.append((begin + x, begin + y))
    return [(place, place) for place in range(begin)] + found[::-1]


def _rows(
    a: Sequence[StepAction], b: Sequence[StepAction], pairs: Iterable[tuple[int, int]]
) -> Iterator[AlignedStep]:
    i = j = 0
    for x, y in pairs:
        yield from (AlignedStep("a", one.step, None) for one in a[i:x])
        yield from (AlignedStep("b", None, one.step) for one in b[j:y])
        if x < len(a):
            yield AlignedStep(_op(a[x], b[y]), a[x].step, b[y].step)
        i, j = x + 1, y + 1


def _op(one: StepAction, other: StepAction) -> AlignedOp:
    if one.exact == other.exact:
        return "same"
    return "changed" if one.tools else "reworded"
