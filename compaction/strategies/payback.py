"""Payback: what has had its use leaves the context as soon as that pays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compaction.cache.economy import expected, pays
from compaction.context import Block
from compaction.edits import Edit, Trigger
from compaction.plan import Proposal, View
from compaction.ripening import Ages, Stub
from compaction.stubs import (
    entered_short,
    input_stub,
    result_stub,
    said_stub,
    stand_in,
    thought_stub,
)

SHORTEST = 15
"""Tokens that no stub falls below: what a stub saves of less is not worth finding out."""


@dataclass(frozen=True, slots=True)
class Payback:
    """When tool inputs and outputs are ripe, and when those leave; `help` says what each does.

    All numbers are ours, by measurement (docs/presets.md); the formula is in docs/sources.md,
    Worked cache example.
    """

    results: int = field(
        default=3,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after which the result of a command or a search is ripe to leave.",
        },
    )
    readings: int = field(
        default=20,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after which the text of a file that was read is ripe to leave.",
        },
    )
    done: int = field(
        default=1,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "The same where the file was changed, or the same lines read again, since.",
        },
    )
    inputs: int = field(
        default=30,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after which inputs of tools, and what edits answer, are ripe to leave.",
        },
    )
    patience: float = field(
        default=3.0,
        metadata={
            "min": 0.0,
            "max": 100.0,
            "help": "Rewriting costs that reading what is ripe must have cost before it leaves, "
            "where the objective is cheap.",
        },
    )
    haste: float = field(
        default=1.0,
        metadata={
            "min": 0.0,
            "max": 100.0,
            "help": "The same where the objective is lean.",
        },
    )
    said: int = field(
        default=40,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after which what the agent itself wrote is ripe to leave; 0 for never.",
        },
    )
    thought: int = field(
        default=1,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Steps after the end of its turn after which what the agent thought is ripe to "
            "leave; 0 for never.",
        },
    )
    listed: float = field(
        default=0.06,
        metadata={
            "min": 0.0,
            "max": 1.0,
            "help": "Share of a text that its stub may list of the names that stand nowhere else "
            "any more, where the objective is lean.",
        },
    )
    full: float = field(
        default=0.8,
        metadata={
            "min": 0.05,
            "max": 1.0,
            "help": "Share of the window less the reserve at which all that is ripe leaves, "
            "whatever it costs.",
        },
    )
    minimum: int = field(
        default=50,
        metadata={
            "min": 1,
            "max": 1_000_000,
            "help": "Tokens that a stub must save at least, or the text stays.",
        },
    )
    exclude: tuple[str, ...] = field(
        default=(), metadata={"help": "Tools whose inputs and outputs are left alone."}
    )


class _Cut(NamedTuple):
    """From which position on what is ripe leaves, why, and what that clears and rewrites."""

    start: int
    trigger: Trigger
    cleared: int
    rewritten: int


class _Ripe(NamedTuple):
    """A block that may leave: what would stand for it, what that saves, and since when it could."""

    now: Block
    stub: Stub
    saved: int
    since: int


def payback(view: View, parameters: Payback) -> Proposal:
    """Replace what is ripe by stubs, from the place on from which that saves most, if it pays.

    It pays where what was paid to read it since it was ripe exceeds what rewriting costs, some
    times over (`patience`), and where it would pay again over the calls that are to be expected.
    A cold cache makes it free; a task that ended, and a window that is full, need no waiting.
    """
    p = parameters
    least = p.minimum + SHORTEST
    ages = Ages(p.results, p.readings, p.done, p.inputs, p.said, p.thought, least)
    order, since = view.ripening.ripe(ages, view.step, view.known)
    ripe: list[_Ripe] = []
    gone: list[int] = []
    for position in order:
        now = view.standing.get(position)
        original = view.originals[position]
        taken = f"payback:{original.id}" in view.known  # somebody took the stub back
        stub = None if now is None or taken else _stub(view, now, original)
        if now is None or stub is None or now.tokens - stub.tokens < p.minimum:
            gone.append(position)
        elif _may_leave(view, now, p):
            ripe.append(_Ripe(now, stub, now.tokens - stub.tokens, since[position]))
    cut = _cut(view, p, ripe)
    leaving = [one for one in ripe if cut is not None and one.now.position >= cut.start]
    if view.objective == "lean":
        leaving = _listing(view, p, leaving)
    view.ripening.taken(ages, [*gone, *(one.now.position for one in leaving)])
    if cut is None:
        return Proposal((), view.mark)
    edits = tuple(_edit(view, one) for one in leaving)
    return Proposal(edits, view.mark, cut.trigger, _reason(view, len(edits), cut))


def _stub(view: View, now: Block, original: Block) -> Stub | None:
    """What would stand for a block, made once; None where it does not stand whole."""
    if now.replaces is not None and not (entered_short(now) and now.replaces == original.id):
        return None
    made = view.ripening.stubs.get(original.position)
    if made is None:
        made = view.ripening.stubs[original.position] = _made(view, original)
    return made


def _made(view: View, original: Block, names: str = "") -> Stub:
    if original.type == "tool_use":
        text = input_stub(original, names, brief=True)
    elif original.type == "text":
        text = said_stub(original, names)
    elif original.type == "thinking":
        text = thought_stub(original, names)
    else:
        use = view.guard.groups.uses.get(original.tool_call or "")
        text = result_stub(original, use, names, brief=True)
    return Stub(text, view.means.count(text))


def _may_leave(view: View, now: Block, parameters: Payback) -> bool:
    if not view.guard.may_replace(now) or now.position in view.guard.groups.open_failures:
        return False
    return not parameters.exclude or now.tool not in parameters.exclude


def _listing(view: View, parameters: Payback, leaving: list[_Ripe]) -> list[_Ripe]:
    """The same with the names in each stub that nothing holds any more."""
    pairs = [(one.now, view.originals[one.now.position]) for one in leaving]
    names = view.ripening.holders.lists(pairs, parameters.listed)
    return [_named(view, one, names.get(one.now.position, "")) for one in leaving]


def _named(view: View, one: _Ripe, names: str) -> _Ripe:
    """The same with names in its stub, where that saves enough still."""
    made = _made(view, view.originals[one.now.position], names) if names else one.stub
    saved = one.now.tokens - made.tokens
    return one._replace(stub=made, saved=saved) if saved > 0 else one


def _cut(view: View, parameters: Payback, ripe: list[_Ripe]) -> _Cut | None:
    """The best place to begin; None where nothing is to leave yet."""
    if not ripe:
        return None
    first = ripe[0].now.position
    saved = sum(one.saved for one in ripe)
    if view.cold:
        return _Cut(first, "cold", saved, 0)
    if view.used >= parameters.full * view.room:
        rewritten = view.total - view.tokens_before(first) - saved - view.fresh
        return _Cut(first, "window", saved, max(rewritten, 0))
    return _best(view, parameters, ripe)


def _best(view: View, parameters: Payback, ripe: list[_Ripe]) -> _Cut | None:
    """Of all places from which on it pays, that which gains most over the calls to be expected."""
    rates, remaining, step = view.means.rates, expected(view.step), view.step
    lean, boundary = view.objective == "lean", view.boundary
    patience = parameters.haste if lean else parameters.patience
    if boundary:
        patience = 0.0
    behind = view.total - view.fresh  # what the cache holds of the prompt
    best, most = None, float("-inf")
    cleared = read = 0
    for one in reversed(ripe):
        cleared += one.saved
        read += one.saved * (step - one.since + 1)
        position = one.now.position
        rewritten = max(behind - view.tokens_before(position) - cleared, 0)
        price = rewritten * rates.rewriting
        gain = remaining * cleared * rates.read - price
        if read * rates.read < patience * price or gain <= most:
            continue
        if lean or pays(remaining, cleared, rewritten, rates):
            most, best = gain, _Cut(position, boundary or "pays", cleared, rewritten)
    return best


def _edit(view: View, one: _Ripe) -> Edit:
    original = view.originals[one.now.position]
    stub = stand_in(original, one.stub.text, one.stub.tokens, "payback", now=one.now.id)
    if stub.type == "thinking":
        stub = replace(stub, type="text")  # what is no thinking of theirs, providers refuse as such
    reason = f"{one.now.tokens} tokens, ripe since step {one.since}"
    return Edit("payback", (one.now.id,), stub, reason)


def _reason(view: View, count: int, cut: _Cut) -> str:
    blocks = f"{count} block{'' if count == 1 else 's'}, {cut.cleared} tokens"
    if cut.trigger == "cold":
        return f"{blocks}; the cache is cold, so nothing is rewritten"
    if cut.trigger == "window":
        return f"{blocks}; {view.used} of {view.room} tokens are used"
    told = "" if view.means.rates.known else " (no price is known: by the usual ratios)"
    return f"{blocks} against {cut.rewritten} to be written again{told}"
