"""What a policy that knew the future would cost: a bound to compare policies with."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import replace

from compaction.cache.economy import TTLSetting, session_rates
from compaction.cache.prefix import PrefixSums
from compaction.context.blocks import Block
from compaction.context.edits import Entry, Revision
from compaction.context.session import Session
from compaction.facts.facts import FactIndex
from compaction.facts.recall import needed
from compaction.losses.feasibility import EditIndex
from compaction.policies.policy import Policy
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import Run, StepTokens

STUB = 15
"""Tokens that stay of a block: no policy can replace a call or a result by less."""

LEAVES = ("tool_use", "tool_result", "thinking")
"""Types of blocks that may leave: what people and the agent said stays, as under our policies."""

PATIENCE = (2, 8, 20, 40, 80)
"""How many times over an edit has to pay: the cheapest of these schedules is the oracle's."""


def oracle(session: Session, index: FactIndex, edits: EditIndex, terms: Terms) -> Run | None:
    """Return the cheapest run found in which every need and every old text of an edit stays.

    A block leaves a stub once nothing needs it any more, when that pays over the calls that really
    follow. Not a minimum: the cheapest of a few schedules, each for whole blocks. The TTL is that
    of the policy or of the session, whichever costs less. None without prices. For every schedule,
    n log n in blocks for each step at which some are no longer needed.
    """
    if terms.price is None or not session.calls:
        return None
    ends = last_needs(session, index, edits)

    def tried(ttl: TTLSetting, patience: float) -> tuple[int, float, Run]:
        run = _Schedule(session, terms, ttl, ends, patience).run()
        return simulate_cache(run, session.calls, terms).cost or 0, patience, run

    own: TTLSetting = "recorded" if terms.ttl == "1h" else "5m"
    cost, patience, run = min((tried(own, one) for one in PATIENCE), key=_cost)
    if own == "recorded":
        other, _, shorter = tried("mixed", patience)
        return shorter if other < cost else run
    return run


def _cost(one: tuple[int, float, Run]) -> int:
    return one[0]


def last_needs(session: Session, index: FactIndex, edits: EditIndex) -> dict[str, int]:
    """Return the last step that needs each block: the newest that shows a needed fact or line."""
    ends: dict[str, int] = {}
    for step, _, seen in needed(session, index):
        ends[seen[-1].id] = step
    for step, lines in edits.edits:
        for line in lines:
            holder = edits.newest(line, step)
            ends[holder.id] = max(step, ends.get(holder.id, 0))
    return ends


class _Schedule:
    """One pass over a session: blocks leave when that pays `patience` times over."""

    def __init__(
        self,
        session: Session,
        terms: Terms,
        ttl: TTLSetting,
        ends: Mapping[str, int],
        patience: float,
    ) -> None:
        self.session, self.patience, self.ends = session, patience, ends
        self.policy = Policy(name="oracle", ttl=ttl)
        self.rates = session_rates(session.model, session.calls[0].at, terms.ttl, ttl)
        self.cold = self._cold()
        self.worth = self._worth()
        self.sums = PrefixSums()
        self.originals: list[Entry] = []
        self.stubs: list[Entry] = []
        self.steps: list[StepTokens] = []
        self.revisions: list[Revision] = []
        self.free: list[int] = []
        """Places, ascending, of blocks that nothing needs any more."""
        self.leaving: dict[int, list[int]] = {}
        """Places by the last step that needs them."""
        self.last_cut = -1

    def _cold(self) -> list[bool]:
        times = [call.at for call in self.session.calls]
        return [
            before is not None and now is not None and now - before > self.rates.ttl
            for before, now in zip([None, *times], times, strict=False)
        ]

    def _worth(self) -> list[int]:
        """Return what a token costs from each call on, if it stays."""
        found, sum_ = [], 0
        for cold in reversed(self.cold):
            sum_ += self.rates.write if cold else self.rates.read
            found.append(sum_)
        return found[::-1]

    def run(self) -> Run:
        """Return the contexts of all calls."""
        came = 0
        for number, call in enumerate(self.session.calls):
            fresh = self._freed(call.step)
            before = self.sums.before(came)
            start = self._start(number, came) if fresh or self.cold[number] else None
            unchanged = before if start is None else self.sums.before(start)
            if start is not None:
                self._cut(start, call.step, came)
            came = self._arrive(came, call.step)
            total = self.sums.before(came)
            frontier = self.sums.before(self.last_cut + 1)
            made = len(self.revisions) if start is not None else None
            self.steps.append(
                StepTokens(call.step, call.at, total, unchanged, frontier, (), made, lasting=total)
            )
        entries, revisions = (*self.originals, *self.stubs), tuple(self.revisions)
        return Run(self.policy, tuple(self.steps), entries, revisions, (), self.session.hidden)

    def _freed(self, step: int) -> bool:
        """Note the blocks whose last need came before this step; return whether there are any."""
        past = [last for last in self.leaving if last < step]
        for last in past:
            for place in self.leaving.pop(last):
                insort(self.free, place)
        return bool(past)

    def _arrive(self, came: int, step: int) -> int:
        """Add the blocks that this step sees first; return how many there are now."""
        for block in self.session.blocks[came:]:
            if block.born > step:
                break
            self.sums.append(block.tokens)
            self.originals.append(Entry(block, block.born))
            if block.type in LEAVES and block.tokens > STUB and not block.pinned:
                last = max(self.ends.get(block.id, 0), step)
                self.leaving.setdefault(last, []).append(came)
            came += 1
        return came

    def _start(self, number: int, came: int) -> int | None:
        """Return the place from which free blocks leave, if that pays enough: the best one."""
        extra = 0 if self.cold[number] else self.rates.rewriting
        total = self.sums.before(came)
        cleared, best, start = 0, 0, None
        for place in reversed(self.free):
            cleared += self.originals[place].block.tokens - self._stub(place)
            cost = (total - self.sums.before(place) - cleared) * extra
            net = cleared * self.worth[number] - cost
            if net > max(best, self.patience * cost):
                best, start = net, place
        return start

    def _stub(self, place: int) -> int:
        return 0 if self.originals[place].block.type == "thinking" else STUB

    def _cut(self, start: int, step: int, came: int) -> None:
        """Replace the free blocks from a place on."""
        number, before = len(self.revisions) + 1, self.sums.before(came)
        first = bisect_left(self.free, start)
        for place in self.free[first:]:
            entry, stub = self.originals[place], self._stub(place)
            entry.to_step, entry.closed_by = step, number
            self.sums.add(place, stub - entry.block.tokens)
            if stub:
                self.stubs.append(Entry(_replaced(entry.block, stub), step, opened_by=number))
                self.last_cut = max(self.last_cut, place)
        del self.free[first:]
        after = self.sums.before(came)
        self.revisions.append(Revision(number, step, "pays", (), before, after))


def _replaced(block: Block, tokens: int) -> Block:
    stub = f"{block.id}:oracle"
    return replace(block, id=stub, tokens=tokens, chars=0, text="", replaces=block.id)
