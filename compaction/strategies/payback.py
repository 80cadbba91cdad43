"""Payback: what has had its use leaves the context as soon as that pays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compaction.context import Block
from compaction.economy import expected, pays
from compaction.edits import Edit, Trigger
from compaction.plan import Proposal, View
from compaction.ripening import Ages
from compaction.stubs import entered_short, input_stub, result_stub, stand_in

STUB = 70
"""Tokens that a stub is taken for while none is written yet (mean on the corpus: 68)."""


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
        default=16,
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
        default=2.5,
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


def payback(view: View, parameters: Payback) -> Proposal:
    """Replace what is ripe by stubs, from the place on from which that saves most, if it pays.

    It pays where what was paid to read it since it was ripe exceeds what rewriting costs, some
    times over (`patience`), and where it would pay again over the calls that are to be expected.
    A cold cache makes it free; a task that ended, and a window that is full, need no waiting.
    """
    least = parameters.minimum + STUB
    p = parameters
    ages = Ages(p.results, p.readings, p.done, p.inputs, least)
    order, since = view.ripening.ripe(ages, view.step, view.known)
    if not order:
        return Proposal((), view.mark)
    standing: list[tuple[Block, int]] = []
    gone: list[int] = []
    for position in order:
        now = view.standing.get(position)
        if (
            now is None
            or not _is_whole(now, view.originals[position])
            or _was_taken(view, position)
        ):
            gone.append(position)
        elif _may_leave(view, now, parameters):
            standing.append((now, since[position]))
    cut = _cut(view, parameters, standing)
    edits = []
    if cut is not None:
        for now, ripe in standing:
            if now.position >= cut.start:
                edit = _edit(view, now, parameters, ripe)
                if edit is not None:
                    edits.append(edit)
                gone.append(now.position)
    view.ripening.taken(ages, gone)
    if cut is None or not edits:
        return Proposal((), view.mark)
    return Proposal(tuple(edits), view.mark, cut.trigger, _reason(view, len(edits), cut))


def _was_taken(view: View, position: int) -> bool:
    """Whether a stub stood here before and somebody took it back."""
    return f"payback:{view.originals[position].id}" in view.known


def _is_whole(now: Block, original: Block) -> bool:
    return now.replaces is None or (entered_short(now) and now.replaces == original.id)


def _may_leave(view: View, now: Block, parameters: Payback) -> bool:
    if not view.guard.may_replace(now) or now.position in view.guard.groups.open_failures:
        return False
    return not parameters.exclude or now.tool not in parameters.exclude


def _cut(view: View, parameters: Payback, ripe: list[tuple[Block, int]]) -> _Cut | None:
    """The best place to begin; None where nothing is to leave yet."""
    if not ripe:
        return None
    first = ripe[0][0].position
    saved = sum(now.tokens - STUB for now, _ in ripe)
    if view.cold:
        return _Cut(first, "cold", saved, 0)
    if view.used >= parameters.full * view.room:
        return _Cut(first, "window", saved, view.total - view.tokens_before(first) - saved)
    return max(_paying(view, parameters, ripe), default=(0, None), key=_by_gain)[1]


def _by_gain(found: tuple[int, _Cut | None]) -> int:
    return found[0]


def _paying(
    view: View, parameters: Payback, ripe: list[tuple[Block, int]]
) -> Iterator[tuple[int, _Cut]]:
    """Every place from which on it pays, with what is gained over the calls to be expected."""
    rates, remaining = view.means.rates, expected(view.step)
    patience = parameters.patience if view.objective == "cheap" else parameters.haste
    trigger: Trigger = view.boundary or "pays"
    cleared = read = 0
    fresh = view.fresh
    for now, since in reversed(ripe):
        saved = now.tokens - STUB
        cleared += saved
        read += saved * (view.step - since + 1)
        behind = view.total - view.tokens_before(now.position) - cleared - fresh
        rewritten = max(behind, 0)
        price = rewritten * rates.rewriting
        waited = bool(view.boundary) or read * rates.read >= patience * price
        if waited and (view.objective == "lean" or pays(remaining, cleared, rewritten, rates)):
            gain = remaining * cleared * rates.read - price
            yield gain, _Cut(now.position, trigger, cleared, rewritten)


def _edit(view: View, now: Block, parameters: Payback, ripe: int) -> Edit | None:
    original = view.originals[now.position]
    if original.type == "tool_use":
        text = input_stub(original)
    else:
        uses = view.guard.groups.uses
        text = result_stub(original, uses.get(original.tool_call or ""))
    tokens = view.means.count(text)
    if now.tokens - tokens < parameters.minimum:
        return None
    stub = replace(stand_in(original, text, tokens, "payback"), replaces=now.id)
    return Edit("payback", (now.id,), stub, f"{now.tokens} tokens, ripe since step {ripe}")


def _reason(view: View, count: int, cut: _Cut) -> str:
    blocks = f"{count} block{'' if count == 1 else 's'}, {cut.cleared} tokens"
    if cut.trigger == "cold":
        return f"{blocks}; the cache is cold, so nothing is rewritten"
    if cut.trigger == "window":
        return f"{blocks}; {view.used} of {view.room} tokens are used"
    told = "" if view.means.rates.known else " (no price is known: by the usual ratios)"
    return f"{blocks} against {cut.rewritten} to be written again{told}"
