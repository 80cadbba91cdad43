"""Which facts that left a context were needed again before they came back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from itertools import groupby
from operator import attrgetter

from compaction.context.blocks import Block
from compaction.context.edits import Entry
from compaction.facts.facts import facts_of
from compaction.facts.paths import normal, paths_told, tells_of
from compaction.losses.ledger import CompactedContext, Fact, ledger_of
from compaction.losses.repairs import WINDOW, Repair
from compaction.losses.weighty import named_in

FactsOf = Callable[[Block], Set[str]]


def needed_again(
    later: Iterable[Block],
    repaired: Collection[int] = (),
    until: int | None = None,
    of: FactsOf = facts_of,
) -> dict[str, int]:
    """Return the normalized facts that calls named after they were missing, with the first step
    that missed each. A path was shown by any text that tells of it (`paths.tells`).

    `later` are the blocks that came after a removal. A fact that a message or result showed first
    stands in the context when it is used, so its loss did no harm, unless that message or result
    is at a position of `repaired`: then it came because the fact was missing, at the step that
    asked for it. From step `until`, another removal answers for the facts that had come back.
    Linear in the texts.
    """
    found: dict[str, int] = {}
    back: dict[str, int | None] = {}
    ordered = sorted(later, key=attrgetter("born", "position"))
    paths = {token for one in ordered for token in map(normal, named_in(one)) if "/" in token}
    for born, group in groupby(ordered, _born):
        blocks, step = list(group), born - 1
        # The output of step k is born at k + 1, as are the results that only step k + 1 sees.
        for block in blocks:
            for token in map(normal, named_in(block)):
                moved_on = until is not None and step >= until and token in back
                missed = back.get(token, step)
                if not moved_on and missed is not None:
                    found.setdefault(token, missed)
        for block in blocks:
            # A person's correction is no answer to a call.
            asked = born if block.type == "text" else step
            for token in _shown(of(block), paths):
                back.setdefault(token, asked if block.position in repaired else None)
            paths.difference_update(back)
    return found


def _shown(facts: Set[str], paths: Set[str]) -> Iterator[str]:
    """Yield the normalized facts of a block, and which of these paths they tell of."""
    yield from map(normal, facts)
    told = [paths_told(fact) for fact in facts if "/" in fact] if paths else []
    if told:
        written = set().union(*(one for one, _ in told))
        starts = set().union(*(one for _, one in told))
        yield from (path for path in paths if tells_of(path, written, starts))


def _born(block: Block) -> int:
    return block.born


def positions_of(found: Iterable[Repair], blocks: Iterable[Block]) -> set[int]:
    """Return the positions of the blocks that repairs brought: results, and corrections."""
    shown = list(found)
    calls = {one.block.tool_call for one in shown} - {None}
    places = {one.block.position for one in shown}
    results = (block for block in blocks if block.type == "tool_result")
    return places | {block.position for block in results if block.tool_call in calls}


class Dropped:
    """Finds what removals without a summary lost in one run, from all its entries and repairs."""

    def __init__(
        self, entries: Sequence[Entry], repairs: Iterable[Repair], of: FactsOf = facts_of
    ) -> None:
        self._entries, self._of = entries, of
        originals = {one.block.id: one.block for one in entries if _is_original(one.block)}
        self._originals = list(originals.values())
        self._repaired = positions_of(repairs, self._originals)

    def facts(self, number: int, step: int) -> tuple[Fact, ...]:
        """Return the lost facts of a revision that were needed again, by step.

        What a stub of the context leads to is not lost. Linear in the texts of the context and of
        the next `WINDOW` steps, or in those of what the revision removed if none is needed.
        """
        standing = [one.block for one in self._entries if _stands(one, step)]
        led_to = {ref for block in standing for ref in block.refs}
        span = [
            one.block
            for one in self._entries
            if one.closed_by == number and one.from_step < step and one.block.id not in led_to
        ]
        if not span:
            return ()
        later = [one for one in self._originals if step < one.born <= step + WINDOW]
        needed = needed_again(later, self._repaired, of=self._of)
        if not any(normal(fact) in needed for block in span for fact in self._of(block)):
            return ()
        made = ledger_of(span, "", CompactedContext(standing), needed=needed)
        lost = (one for one in made.facts if one.state == "lost" and one.needed is not None)
        return tuple(sorted(lost, key=_needed))


def _needed(fact: Fact) -> tuple[int, str]:
    return fact.needed or 0, fact.fact


def _is_original(block: Block) -> bool:
    return block.replaces is None and block.kind != "summary"


def _stands(entry: Entry, step: int) -> bool:
    return entry.from_step <= step and (entry.to_step is None or entry.to_step > step)
