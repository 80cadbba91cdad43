"""Payback: offload results that are no longer needed, once that saves more than it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compaction.cache.economy import expected
from compaction.context.blocks import Block
from compaction.context.edits import Edit, Trigger, amount
from compaction.context.stubs import (
    input_stub,
    reading_stub,
    result_stub,
    said_stub,
    stand_in,
)
from compaction.facts.holders import is_reading
from compaction.proposals.plan import Proposal, View
from compaction.proposals.strategy import Strategy
from compaction.seen.ripening import Ages, Stub
from compaction.strategies.payback_settings import Payback, payback_remarks

SHORTEST = 15
"""Minimum tokens of any stub: shorter blocks cannot save anything."""

WORTH_A_BREAK = 0.05
"""Share of the room that a full window clears at once. While a summary is awaited, or where the
hidden part is large, it would otherwise clear what has ripened at every step, and break the cache
each time."""

WORTH_UNRIPE = 0.10
"""Share of the room to clear at least where blocks that are not ripe leave too, because they may
still be needed (our choice)."""


class _Cut(NamedTuple):
    """The position from which ripe blocks are offloaded, why, and what that clears and rewrites."""

    start: int
    trigger: Trigger
    cleared: int
    rewritten: int


class _Ripe(NamedTuple):
    """A block that can be offloaded: its stub, the tokens saved, and the step it became ripe."""

    now: Block
    stub: Stub
    saved: int
    since: int


def payback(view: View, parameters: Payback) -> Proposal:
    """Replace ripe blocks by stubs, from the position that saves most, if it pays.

    It pays if reading the ripe blocks has cost more than rewriting costs, several times over
    (`patience`), and if it would pay again over the calls to expect. A cold cache makes it free;
    after a finished task, or with a full window, there is no waiting.
    """
    p = parameters
    least = p.minimum + SHORTEST
    ages = Ages(
        p.results, _readings(view, p), p.done, p.settled, p.inputs, p.said, p.thought, least
    )
    order, since = view.ripening.ripe(ages, view.step, view.known)
    ripe: list[_Ripe] = []
    gone: list[int] = []
    for position in order:
        now = view.standing.get(position)
        original = view.originals[position]
        taken = f"payback:{original.id}" in view.known  # a person undid the stub
        stub = None if now is None or taken else _stub(view, now, original)
        if now is None or stub is None or now.tokens - stub.tokens < p.minimum:
            gone.append(position)
        elif _may_leave(view, now, p) and (from_step := _since(view, now, p, since)) <= view.step:
            ripe.append(_Ripe(now, stub, now.tokens - stub.tokens, from_step))
    if p.relevant and not view.cold and view.used >= p.full * view.room:
        ripe = _with_unripe(view, p, ripe)
    cut = _cut(view, p, ripe)
    leaving = [one for one in ripe if cut is not None and one.now.position >= cut.start]
    if p.listed:
        leaving = _listing(view, p, leaving)
    places = (one.now.position for one in leaving)
    view.ripening.taken(ages, [*gone, *(place for place in places if place in since)])
    if cut is None:
        return Proposal((), view.mark)
    edits = tuple(_edit(view, one) for one in leaving)
    return Proposal(edits, view.mark, cut.trigger, _reason(view, len(edits), cut))


def _readings(view: View, parameters: Payback) -> int:
    """Return the age of readings: as set, or the session's own, within half and twice of that."""
    age = parameters.readings
    if not parameters.follow:
        return age
    view.mentions.learn(view.arrivals, view.originals)
    own = view.mentions.reach(parameters.follow)
    return age if own is None else min(max(own, age // 2), 2 * age)


def _since(view: View, now: Block, parameters: Payback, since: Mapping[int, int]) -> int:
    """Return the step from which a block is ripe, which a use puts off by the time it had before.

    Source: CodeGenius' tiers by age and frequency of access; the rule is ours.
    """
    ripe = since[now.position]
    born = view.originals[now.position].born
    last = view.mentions.last.get(now.position, born) if parameters.follow else born
    return ripe + max(last - born, 0)


def _with_unripe(view: View, parameters: Payback, ripe: list[_Ripe]) -> list[_Ripe]:
    """Add blocks that are not ripe, least relevant per token first, until the prompt has the
    wanted size; return ripe ones alone if that frees too little.

    Results stay for `results` steps, and so does text that a note of dedupe relies on.
    """
    p = parameters
    least = int(WORTH_UNRIPE * view.room)
    over = max(view.used - int(p.relevant * view.room), least)
    taken = {one.now.position for one in ripe}
    found: list[_Ripe] = []
    for position, now in view.standing.items():
        original = view.originals[position]
        if now.type not in ("tool_use", "tool_result") or original.born > view.step - p.results:
            continue
        if now.tokens < p.minimum + SHORTEST or position in taken or position in view.ripening.lent:
            continue
        stub = None if f"payback:{original.id}" in view.known else _stub(view, now, original)
        if stub is None or now.tokens - stub.tokens < p.minimum or not _may_leave(view, now, p):
            continue
        found.append(_Ripe(now, stub, now.tokens - stub.tokens, view.step))
    most = view.billed(sum(one.saved for one in (*ripe, *found)))
    if most < least and not view.used - most <= view.room < view.used:
        return ripe
    view.mentions.learn(view.arrivals, view.originals)
    scores = view.mentions.relevance([[one.now.position] for one in found])
    ranked = sorted(zip(scores, found, strict=True), key=_per_token)
    over -= view.billed(sum(one.saved for one in ripe))
    chosen = list(ripe)
    for _, one in ranked:
        if over <= 0:
            break
        chosen.append(one)
        over -= view.billed(one.saved)
    return sorted(chosen, key=lambda one: one.now.position)


def _per_token(ranked: tuple[int, _Ripe]) -> tuple[float, int]:
    score, one = ranked
    return score / one.saved, one.now.position


def _stub(view: View, now: Block, original: Block) -> Stub | None:
    """Return the stub of a block, built once; None if the block is not in the context in full."""
    if now.replaces is not None and not (view.entered_short(now) and now.replaces == original.id):
        return None
    made = view.ripening.stubs.get(original.position)
    if made is None:
        made = view.ripening.stubs[original.position] = _made(view, original)
    return made


def _made(view: View, original: Block, kept: str = "") -> Stub:
    if original.type == "tool_use":
        text = input_stub(original, kept, brief=True)
    elif original.type == "text":
        text = said_stub(original, kept)
    elif original.type == "thinking":
        return Stub("", 0)
    elif kept and is_reading(original):
        text = reading_stub(original, kept)
    else:
        use = view.guard.groups.uses.get(original.tool_call or "")
        text = result_stub(original, use, kept, brief=True)
    return Stub(text, view.means.count(text))


def _may_leave(view: View, now: Block, parameters: Payback) -> bool:
    if not view.guard.may_replace(now) or now.position in view.guard.groups.open_failures:
        return False
    return not parameters.exclude or now.tool not in parameters.exclude


def _listing(view: View, parameters: Payback, leaving: list[_Ripe]) -> list[_Ripe]:
    """Add to each stub the lines or names that nothing in the context holds any longer."""
    pairs = [(one.now, view.originals[one.now.position]) for one in leaving]
    kept = view.ripening.holders.lists(pairs, parameters.listed)
    return [_keeping(view, one, kept.get(one.now.position, "")) for one in leaving]


def _keeping(view: View, one: _Ripe, kept: str) -> _Ripe:
    """Add what is kept to a stub if it still saves enough."""
    made = _made(view, view.originals[one.now.position], kept) if kept else one.stub
    saved = one.now.tokens - made.tokens
    return one._replace(stub=made, saved=saved) if saved > 0 else one


def _cut(view: View, parameters: Payback, ripe: list[_Ripe]) -> _Cut | None:
    """Return the best position to start from; None if nothing can be offloaded yet."""
    if not ripe:
        return None
    first = ripe[0].now.position
    saved = sum(one.saved for one in ripe)
    if view.cold:
        return _Cut(first, "cold", saved, 0)
    if view.used >= parameters.full * view.room and _makes_room(view, saved):
        rewritten = view.total - view.tokens_before(first) - saved - view.fresh
        return _Cut(first, "window", saved, max(rewritten, 0))
    return _best(view, parameters, ripe)


def _makes_room(view: View, saved: int) -> bool:
    """Return whether clearing is worth a break of the cache, or makes the prompt fit."""
    fits = view.used - view.billed(saved) <= view.room < view.used
    return fits or view.billed(saved) >= WORTH_A_BREAK * view.room


def _best(view: View, parameters: Payback, ripe: list[_Ripe]) -> _Cut | None:
    """Of all positions at which it pays, return the one that gains most over the expected calls.

    Thinking of this turn that an edit makes invalid is counted as if it were thought again.
    """
    rates, remaining, step = view.means.rates, expected(view.step), view.step
    lean, boundary = view.objective == "lean", view.boundary
    patience = parameters.haste if lean else parameters.patience
    if boundary:
        patience = 0.0
    behind = view.total - view.fresh  # what the cache holds of the prompt
    best, most = None, float("-inf")
    cleared = read = lost = 0
    thoughts = view.thoughts
    for one in reversed(ripe):
        cleared += one.saved
        read += one.saved * (step - one.since + 1)
        position = one.now.position
        rewritten = max(behind - view.tokens_before(position) - cleared, 0)
        while thoughts and thoughts[-1].position > position:
            lost += thoughts.pop().tokens
        price = rewritten * rates.rewriting + lost * rates.output
        gain = remaining * cleared * rates.read - price
        if read * rates.read < patience * price or gain <= most:
            continue
        if lean or gain > 0:
            most, best = gain, _Cut(position, boundary or "pays", cleared, rewritten)
    return best


def _edit(view: View, one: _Ripe) -> Edit:
    original = view.originals[one.now.position]
    reason = f"{one.now.tokens} tokens, ripe since step {one.since}"
    if original.type == "thinking":
        # A stub would speak in the agent's voice, and providers refuse thinking that is not theirs.
        return Edit("payback", (one.now.id,), None, reason)
    stub = stand_in(original, one.stub.text, one.stub.tokens, "payback", now=one.now.id)
    return Edit("payback", (one.now.id,), stub, reason)


def _reason(view: View, count: int, cut: _Cut) -> str:
    blocks = f"{amount(count, 'block')}, {cut.cleared} tokens"
    if cut.trigger == "cold":
        return f"{blocks}; the cache is cold, so nothing is rewritten"
    if cut.trigger == "window":
        return f"{blocks}; {view.used} of {view.room} tokens are used"
    basis = "" if view.means.rates.known else " (no known price, so the usual ratios apply)"
    return f"{blocks} against {cut.rewritten} written again{basis}"


STRATEGY = Strategy(
    name="payback",
    order=70,
    title="Payback",
    does="Offloads results that are no longer needed, once that saves more than it costs.",
    event="offload",
    propose=payback,
    parameters=Payback,
    docs="payback",
    remarks=payback_remarks,
    joins=True,
    aim="tool output",
    puts_aside=True,
    heeds_objective=True,
    asks=frozenset({"ripening", "facts"}),
)
