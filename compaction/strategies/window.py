"""Sliding window: the first messages, a short summary, and the newest messages."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from compaction.boundaries import largest
from compaction.context import Block
from compaction.plan import Mark, Proposal, View
from compaction.protect import FIXED_KINDS
from compaction.summaries.spans import span_of, summary_edit


@dataclass(frozen=True, slots=True)
class Window:
    """How the window is cut; `help` says what each value does.

    3 primers, 20 recents, 0.75, half of it and 400 tokens: Shannon, whose cases also count
    `messages` (30, 75, 100). `progress` and `rearm` as for
    compaction.
    """

    primers: int = field(
        default=3,
        metadata={"min": 0, "max": 1_000, "help": "Messages at the beginning that stay."},
    )
    recents: int = field(
        default=20,
        metadata={"min": 0, "max": 1_000, "help": "Newest messages that stay, as far as they fit."},
    )
    trigger: float = field(
        default=0.75,
        metadata={
            "min": 0.1,
            "max": 0.95,
            "help": "Share of the budget at which the middle is summarised.",
        },
    )
    target: float = field(
        default=0.375,
        metadata={
            "min": 0.05,
            "max": 0.9,
            "help": "Share of the budget that the context is brought down to.",
        },
    )
    budget: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000_000,
            "help": "Tokens of the conversation that count as full; 0 takes the model's window "
            "less the reserve.",
        },
    )
    messages: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000,
            "help": "Messages of the conversation above which the middle is summarised too; 0 "
            "does not count them.",
        },
    )
    summary_tokens: int = field(
        default=400,
        metadata={"min": 100, "max": 50_000, "help": "Tokens that the summary may take at most."},
    )
    progress: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "help": "Share of the context that a summary must win at least, or none is made.",
        },
    )
    rearm: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "help": "Share of the budget that the context must grow by before another try.",
        },
    )


MARK: Mark = {"rearm": 0}


def window(view: View, parameters: Window) -> Proposal:
    """Replace what lies between primers and recents by a summary.

    Cuts fall between groups. Fewer recents than asked for stay where they would not fit the
    target, the hot cache always stays. Does nothing below the trigger, where what must stay is
    itself above it, or where too little would be won. Where it lies between target and trigger,
    the cut is made and the reason says what is too large. Source: Shannon; ours are the cuts
    between groups, the count of recents in tokens too, and when not to start.
    """
    budget = parameters.budget or view.room
    used = view.total if parameters.budget else view.used
    limit = int(parameters.trigger * budget)
    count = _too_many(view, parameters.messages)
    if (used < limit and not count) or used < view.mark["rearm"]:
        return Proposal((), view.mark)
    target = int(parameters.target * budget)
    later: Mark = {"rearm": used + int(parameters.rearm * budget)}
    start, end = _bounds(view, parameters, target, used)
    targets = [
        block
        for position, block in view.standing.items()
        if start <= position < end and view.guard.may_remove(block)
    ]
    gone = sum(block.tokens for block in targets)
    gone = gone if parameters.budget else view.billed(gone)
    floor = used - gone + parameters.summary_tokens
    if floor >= limit and used >= limit:
        skipped = f"what must stay takes {floor} tokens, the trigger is at {limit}"
        return Proposal((), later, skipped=f"{skipped} ({largest(view)})")
    if gone - parameters.summary_tokens < parameters.progress * used:
        return Proposal((), later, skipped=f"only {gone} tokens could go")
    wish = span_of(view, "window", targets, (), parameters.summary_tokens)
    edit = summary_edit(view, "window", wish, targets)
    if edit is None:
        return Proposal((), view.mark, wanted=(wish,))
    assert edit.replacement is not None
    after = used - gone + edit.replacement.tokens
    mark: Mark = {"rearm": after + int(parameters.rearm * budget)}
    reason = f"{used} of {budget} tokens, trigger at {limit}"
    if used < limit:
        reason = f"{count} messages, at most {parameters.messages}"
    if after > target:
        reason += f"; target of {target} missed: {largest(view)}"
    return Proposal((edit,), mark, "budget", reason)


def _too_many(view: View, most: int) -> int:
    """How many messages stand in the conversation; 0 where that is no more than allowed."""
    if not most or len(view.standing) <= most:
        return 0
    found = len({block.message for block in view.standing.values() if not _fixed(block)})
    return found if found > most else 0


def _bounds(view: View, parameters: Window, target: int, used: int) -> tuple[int, int]:
    """Positions from which and up to which the middle leaves: both between groups."""
    talk = [block for block in view.standing.values() if not _fixed(block)]
    cuts, hot = view.guard.groups.cuts, view.guard.hot
    start = _after_messages(talk, parameters.primers)
    if start is None:
        return hot, hot
    start = _fitting(talk, cuts, min(start, hot), target // 2)
    wish = _before_messages(talk, parameters.recents)
    middle = [block for block in talk if block.position >= start]
    # What must leave before the target is met decides where the recents begin.
    excess = used + parameters.summary_tokens - target
    end = start
    for block in middle:
        if excess <= 0 and block.position >= wish:
            break
        excess -= block.tokens if view.guard.may_remove(block) else 0
        end = block.position + 1
    place = bisect_left(cuts, end)
    return start, min(cuts[place] if place < len(cuts) else hot, hot)


def _fitting(talk: list[Block], cuts: list[int], wish: int, room: int) -> int:
    """The cut nearest after the wished end of the primers, or as far before it as they fit.

    The first group of all may take twice the room: it states the task.
    """
    place = bisect_left(cuts, wish)
    end = cuts[place] if place < len(cuts) else wish
    tokens, fits = 0, talk[0].position if talk else end
    for block in talk:
        if block.position >= end:
            return end
        here = bisect_left(cuts, block.position)
        if here < len(cuts) and cuts[here] == block.position and tokens <= room:
            fits = block.position
        tokens += block.tokens
        if tokens > room and not (fits == talk[0].position and tokens <= 2 * room):
            return fits
    return end


def _fixed(block: Block) -> bool:
    return block.kind in FIXED_KINDS or block.role == "system"


def _after_messages(blocks: list[Block], count: int) -> int | None:
    """Position of the first block after so many messages."""
    seen: set[int] = set()
    for block in blocks:
        if block.message not in seen and len(seen) == count:
            return block.position
        seen.add(block.message)
    return None


def _before_messages(blocks: list[Block], count: int) -> int:
    """Position of the first block of the last so many messages."""
    seen: set[int] = set()
    position = blocks[-1].position + 1 if blocks else 0
    for block in reversed(blocks):
        if block.message not in seen and len(seen) == count:
            return position
        seen.add(block.message)
        position = block.position
    return position
