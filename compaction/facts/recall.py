"""Needed-later recall: what a policy would have hidden from an agent that needed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from compaction.context import Block
from compaction.edits import Entry
from compaction.facts.facts import FactIndex, facts_of
from compaction.session import Session

State = Literal["in_place", "named", "retrievable", "lost"]
STATES: tuple[State, ...] = get_args(State)
WORST = 50
"""So many of the worst needs are kept for the page that explains a figure."""

READING_STANDS = 5
"""Steps that a text which was read back stands, as any result does: the age after which offload
takes results away (CodeGenius). A need within them is served by the same reading."""


class Managed(Protocol):
    """What recall reads of a simulated run."""

    @property
    def entries(self) -> Sequence[Entry]: ...


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that a tool input of `step` holds and that was seen before, in `block` last."""

    step: int
    fact: str
    block: str
    state: State


@dataclass(frozen=True, slots=True)
class Recall:
    """How many needs there were, the share of each state, and the worst needs, lost ones first.

    The four shares sum to 1; without any need everything counts as in place. `read_back` are the
    tokens that the agent would have to read again for the retrievable needs: those of the original
    that a reference leads to, once for all needs of it within `READING_STANDS` steps of a reading.
    """

    needs: int
    in_place: float
    named: float
    retrievable: float
    lost: float
    worst: tuple[Need, ...]
    read_back: int = 0


def needed(session: Session, index: FactIndex) -> list[tuple[int, str, list[Block]]]:
    """What each step needed: step, fact, and the original blocks that had shown it by then.

    The output of step k is born at k + 1, so a tool call born at b is the input of step b - 1,
    and what that step had seen was born by then. One step needs a fact once.
    """
    found: dict[tuple[int, str], list[Block]] = {}
    for block in session.blocks:
        if block.type != "tool_use":
            continue
        step = block.born - 1
        for fact in sorted(index.held.get(block.id, ())):
            seen = [holder for holder in index.holders[fact] if holder.born <= step]
            if seen:
                found[step, fact] = seen
    return [(step, fact, seen) for (step, fact), seen in sorted(found.items(), key=_order)]


def _order(item: tuple[tuple[int, str], list[Block]]) -> tuple[int, str]:
    return item[0]


def recall(session: Session, run: Managed, index: FactIndex | None = None) -> Recall:
    """Judge a simulated run by what the recorded session needed later.

    In place: an original block that holds the fact stands in the managed context of that step.
    Named: a replacement standing there holds it. Retrievable: a replacement stands there that gives
    a reference to a block that holds it (`Block.refs`: a summary that names no source makes nothing
    retrievable). Else lost.
    Work is linear in the text of session and replacements; pass an `index` made before to judge
    many runs of one session. Definition: docs/sources.md, Needed-later recall.
    """
    index = index or FactIndex(session.blocks)
    needs = needed(session, index)
    context = _Standing(run, {fact for _, fact, _ in needs})
    judged = [
        Need(step, fact, seen[-1].id, context.state(step, fact, seen)) for step, fact, seen in needs
    ]
    counts = Counter(need.state for need in judged)
    hidden = [need for need in judged if need.state != "in_place"]
    hidden.sort(key=lambda need: (-STATES.index(need.state), need.step, need.fact))
    return Recall(
        needs=len(judged),
        in_place=counts["in_place"] / len(judged) if judged else 1.0,
        named=counts["named"] / max(len(judged), 1),
        retrievable=counts["retrievable"] / max(len(judged), 1),
        lost=counts["lost"] / max(len(judged), 1),
        worst=tuple(hidden[:WORST]),
        read_back=_read_back(context, needs, judged),
    )


def _read_back(
    context: _Standing, needs: Sequence[tuple[int, str, list[Block]]], judged: Sequence[Need]
) -> int:
    """Tokens of the readings that retrievable needs ask for, in the order of steps."""
    tokens = 0
    read: dict[str, int] = {}
    for (step, _, seen), need in zip(needs, judged, strict=True):
        if need.state != "retrievable":
            continue
        block = next(one for one in reversed(seen) if context.refers_to(one.id, step))
        before = read.get(block.id)
        if before is None or step - before >= READING_STANDS:
            read[block.id] = step
            tokens += block.tokens
    return tokens


class _Standing:
    """What stands when: intervals by block, replacements by fact and by what they refer to."""

    def __init__(self, run: Managed, wanted: set[str]) -> None:
        self.stays: dict[str, list[tuple[int, float]]] = {}
        self.naming: dict[str, list[str]] = {}
        self.referring: dict[str, list[str]] = {}
        read: set[str] = set()
        for entry in run.entries:
            until = float("inf") if entry.to_step is None else entry.to_step
            self.stays.setdefault(entry.block.id, []).append((entry.from_step, until))
            if entry.block.replaces is not None and entry.block.id not in read:
                read.add(entry.block.id)
                for fact in facts_of(entry.block) & wanted:
                    self.naming.setdefault(fact, []).append(entry.block.id)
                for block in entry.block.refs:
                    self.referring.setdefault(block, []).append(entry.block.id)

    def stands(self, block: str, step: int) -> bool:
        return any(since <= step < until for since, until in self.stays.get(block, ()))

    def state(self, step: int, fact: str, seen: Iterable[Block]) -> State:
        holders = [block.id for block in seen]
        if any(self.stands(block, step) for block in holders):
            return "in_place"
        if any(self.stands(block, step) for block in self.naming.get(fact, ())):
            return "named"
        if any(self.refers_to(block, step) for block in holders):
            return "retrievable"
        return "lost"

    def refers_to(self, block: str, step: int) -> bool:
        """Whether a replacement stands at the step that leads to the block."""
        return any(self.stands(by, step) for by in self.referring.get(block, ()))
