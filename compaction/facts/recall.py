"""Needed-later recall: what a policy would have hidden from an agent that needed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from compaction.context.blocks import Block, BlockType
from compaction.context.edits import Entry
from compaction.context.session import Session
from compaction.facts.facts import FactIndex, facts_of

State = Literal["in_context", "named", "retrievable", "lost"]
STATES: tuple[State, ...] = get_args(State)
WORST = 50
"""Maximum number of worst needs kept for the page that explains the figure."""

READING_STANDS = 5
"""Steps that a text stays in the context after it was read back: the age at which offload removes
results (CodeGenius). Needs within these steps share one reading."""


class ManagedRun(Protocol):
    """The part of a simulated run that recall reads."""

    @property
    def entries(self) -> Sequence[Entry]: ...


@dataclass(frozen=True, slots=True)
class Need:
    """A fact in a tool input of `step` that was seen before, most recently in `block`."""

    step: int
    fact: str
    block: str
    state: State


@dataclass(frozen=True, slots=True)
class Recall:
    """The number of needs, the share of each state, and the worst needs, lost ones first.

    The four shares sum to 1; without any need everything counts as in context. `read_back` is the
    number of tokens that the agent would have to read again for retrievable needs: those of the
    referenced original, once for all needs within `READING_STANDS` steps.
    """

    needs: int
    in_context: float
    named: float
    retrievable: float
    lost: float
    worst: tuple[Need, ...]
    read_back: int = 0
    readings: tuple[tuple[int, int], ...] = ()
    """Steps at which needs were not in context, and the tokens of the texts to read again for
    them: named, retrievable and lost ones, each text once within `READING_STANDS` steps."""
    unknown: int = 0
    """Needs left out of all counts: their facts may be in a summary that only the provider can
    read."""
    said: int = 0
    said_in_context: float = 1.0
    """Facts in the agent's own words that were seen before, and the share in context (word
    recall)."""


def needed(
    session: Session, index: FactIndex, of: BlockType = "tool_use"
) -> list[tuple[int, str, list[Block]]]:
    """Return what each step needed: step, fact, and the original blocks that had shown it before.

    `of` says where: in the agent's tool inputs, or in its words (text). The output of step k is
    born at k + 1, so a tool call born at b is the input of step b - 1, and everything that step had
    seen was born by then. A step needs each fact once.
    """
    found: dict[tuple[int, str], list[Block]] = {}
    for block in session.blocks:
        if block.type != of or (of == "text" and block.role != "assistant"):
            continue
        step = block.born - 1
        for fact in sorted(index.held(block)):
            seen = [holder for holder in index.holders[fact] if holder.born <= step]
            if seen:
                found[step, fact] = seen
    return [(step, fact, seen) for (step, fact), seen in sorted(found.items(), key=_order)]


def _order(item: tuple[tuple[int, str], list[Block]]) -> tuple[int, str]:
    return item[0]


def recall(session: Session, run: ManagedRun, index: FactIndex | None = None) -> Recall:
    """Measure a simulated run by the facts that the recorded session needed later.

    In context: an original block that holds the fact is in the managed context of that step. Named:
    a replacement in it holds the fact. Retrievable: a replacement in it references a block that
    holds the fact (`Block.refs`; a summary without references makes nothing retrievable). Otherwise
    lost, or unknown while a summary that cannot be read stands in the context. Work is linear in
    the text of session and replacements; pass an `index` to measure many runs of one session.
    Definition: docs/sources.md, Needed-later recall.
    """
    index = index or FactIndex(session.blocks)
    every = needed(session, index)
    said = needed(session, index, "text")
    context = Intervals(run, {fact for _, fact, _ in every})
    found = [(need, context.state(*need)) for need in every]
    needs = [need for need, state in found if state is not None]
    judged = [
        Need(step, fact, seen[-1].id, state)
        for (step, fact, seen), state in found
        if state is not None
    ]
    counts = Counter(need.state for need in judged)
    hidden = [need for need in judged if need.state != "in_context"]
    hidden.sort(key=lambda need: (-STATES.index(need.state), need.step, need.fact))
    seen_by = [(need, seen) for need, (_, _, seen) in zip(judged, needs, strict=True)]
    missing = [(need.step, seen[-1]) for need, seen in seen_by if need.state != "in_context"]
    referred = [
        (need.step, next(one for one in reversed(seen) if context.refers_to(one.id, need.step)))
        for need, seen in seen_by
        if need.state == "retrievable"
    ]
    return Recall(
        needs=len(judged),
        in_context=counts["in_context"] / len(judged) if judged else 1.0,
        named=counts["named"] / max(len(judged), 1),
        retrievable=counts["retrievable"] / max(len(judged), 1),
        lost=counts["lost"] / max(len(judged), 1),
        unknown=len(every) - len(needs),
        worst=tuple(hidden[:WORST]),
        read_back=sum(_readings(referred).values()),
        readings=tuple(_readings(missing).items()),
        said=len(said),
        said_in_context=_share(said, context),
    )


def _share(needs: Sequence[tuple[int, str, list[Block]]], context: Intervals) -> float:
    """Return the share of needs with an original in context."""
    there = sum(any(context.stands(one.id, step) for one in seen) for step, _, seen in needs)
    return there / len(needs) if needs else 1.0


def _readings(wanted: Iterable[tuple[int, Block]]) -> dict[int, int]:
    """Return the tokens to read by step, each text once within `READING_STANDS` steps.

    `wanted` are steps, in order, and the texts that they need.
    """
    tokens: dict[int, int] = {}
    read: dict[str, int] = {}
    for step, block in wanted:
        before = read.get(block.id)
        if before is None or step - before >= READING_STANDS:
            read[block.id] = step
            tokens[step] = tokens.get(step, 0) + block.tokens
    return tokens


class Intervals:
    """When blocks are in the context: intervals by block, replacements by fact and by reference."""

    def __init__(self, run: ManagedRun, wanted: set[str]) -> None:
        self.stays: dict[str, list[tuple[int, float]]] = {}
        self.naming: dict[str, list[str]] = {}
        self.referring: dict[str, list[str]] = {}
        self._unreadable: list[tuple[int, float]] = []
        read: set[str] = set()
        for entry in run.entries:
            until = float("inf") if entry.to_step is None else entry.to_step
            if entry.block.kind == "summary" and entry.block.type != "text":
                self._unreadable.append((entry.from_step, until))
            self.stays.setdefault(entry.block.id, []).append((entry.from_step, until))
            replaces = entry.block.replaces is not None or entry.block.kind == "summary"
            if replaces and entry.block.id not in read:
                read.add(entry.block.id)
                for fact in facts_of(entry.block) & wanted:
                    self.naming.setdefault(fact, []).append(entry.block.id)
                for block in entry.block.refs:
                    self.referring.setdefault(block, []).append(entry.block.id)

    def stands(self, block: str, step: int) -> bool:
        return any(since <= step < until for since, until in self.stays.get(block, ()))

    def state(self, step: int, fact: str, seen: Iterable[Block]) -> State | None:
        """Return where a fact was at a step; None if a summary that cannot be read may hold it."""
        holders = [block.id for block in seen]
        if any(self.stands(block, step) for block in holders):
            return "in_context"
        if any(self.stands(block, step) for block in self.naming.get(fact, ())):
            return "named"
        if any(self.refers_to(block, step) for block in holders):
            return "retrievable"
        if any(since <= step < until for since, until in self._unreadable):
            return None
        return "lost"

    def refers_to(self, block: str, step: int) -> bool:
        """Return whether a replacement in the context of the step references the block."""
        return any(self.stands(by, step) for by in self.referring.get(block, ()))
