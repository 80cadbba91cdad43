"""Sliding window: keep the first messages, a short summary, and the newest messages."""

from __future__ import annotations

from bisect import bisect_left

from compaction.context.blocks import Block
from compaction.proposals.boundaries import largest
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.protect import FIXED_KINDS
from compaction.proposals.relevant import most_relevant
from compaction.proposals.strategy import Strategy
from compaction.strategies.window_settings import Window, window_remarks
from compaction.summaries.spans import span_of, summary_edit

__all__ = ["MARK", "STRATEGY", "Window", "window"]

MARK: Mark = {"rearm": 0}


def window(view: View, parameters: Window) -> Proposal:
    """Replace the messages between primers and recents by a summary.

    Cuts are between groups. Fewer recents stay if they would not fit the target; the hot cache
    always stays. Does nothing below the trigger, if the messages to keep exceed it, or if too
    little would be freed. If those are between target and trigger, the cut is made and the reason
    names what is too large. With `relevant`, messages that have most in common with the task stay
    too. Source: Shannon, its relevance filter included, which it only names; cuts between groups,
    recents counted in tokens too, and the rules for not starting are our choice.
    """
    budget = parameters.budget or view.room
    used = view.total if parameters.budget else view.used
    limit = int(parameters.trigger * budget)
    count = _too_many(view, parameters.messages)
    if (used < limit and not count) or used < view.mark["rearm"]:
        return Proposal((), view.mark)
    target = int(parameters.target * budget)
    later: Mark = {"rearm": used + int(parameters.rearm * budget)}
    keeping = int(parameters.relevant * target)
    start, end = _bounds(view, parameters, target - keeping, used)
    targets = [
        block
        for position, block in view.standing.items()
        if start <= position < end and view.guard.may_remove(block)
    ]
    if keeping:
        stay = most_relevant(view, targets, keeping)
        targets = [block for block in targets if block.position not in stay]
    gone = sum(block.tokens for block in targets)
    gone = gone if parameters.budget else view.billed(gone)
    floor = used - gone + parameters.summary_tokens
    if floor >= limit and used >= limit:
        skipped = f"what must stay takes {floor} tokens, the trigger is at {limit}"
        return Proposal((), later, skipped=f"{skipped} ({largest(view)})")
    if gone - parameters.summary_tokens < parameters.progress * used:
        return Proposal((), later, skipped=f"only {gone} tokens could be removed")
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
    """Return the number of messages in the conversation; 0 if it is within the limit."""
    if not most or len(view.standing) <= most:
        return 0
    found = len({block.message for block in view.standing.values() if not _fixed(block)})
    return found if found > most else 0


def _bounds(view: View, parameters: Window, target: int, used: int) -> tuple[int, int]:
    """Return the positions between which messages are removed, both between groups."""
    conversation = [block for block in view.standing.values() if not _fixed(block)]
    cuts, hot = view.guard.groups.cuts, view.guard.hot
    start = _after_messages(conversation, parameters.primers)
    if start is None:
        return hot, hot
    start = _fitting(conversation, cuts, min(start, hot), target // 2)
    wish = _before_messages(conversation, parameters.recents)
    middle = [block for block in conversation if block.position >= start]
    # The tokens to remove for the target decide where the recents begin.
    excess = used + parameters.summary_tokens - target
    end = start
    for block in middle:
        if excess <= 0 and block.position >= wish:
            break
        excess -= block.tokens if view.guard.may_remove(block) else 0
        end = block.position + 1
    place = bisect_left(cuts, end)
    return start, min(cuts[place] if place < len(cuts) else hot, hot)


def _fitting(conversation: list[Block], cuts: list[int], wish: int, room: int) -> int:
    """Return the cut at or after the wished end of the primers, or as far before it as they fit.

    The first group may use twice the room, because it states the task.
    """
    place = bisect_left(cuts, wish)
    end = cuts[place] if place < len(cuts) else wish
    tokens, fits = 0, conversation[0].position if conversation else end
    for block in conversation:
        if block.position >= end:
            return end
        here = bisect_left(cuts, block.position)
        if here < len(cuts) and cuts[here] == block.position and tokens <= room:
            fits = block.position
        tokens += block.tokens
        if tokens > room and not (fits == conversation[0].position and tokens <= 2 * room):
            return fits
    return end


def _fixed(block: Block) -> bool:
    return block.kind in FIXED_KINDS or block.role == "system"


def _after_messages(blocks: list[Block], count: int) -> int | None:
    """Return the position of the first block after this many messages."""
    seen: set[int] = set()
    for block in blocks:
        if block.message not in seen and len(seen) == count:
            return block.position
        seen.add(block.message)
    return None


def _before_messages(blocks: list[Block], count: int) -> int:
    """Return the position of the first block of the last `count` messages."""
    seen: set[int] = set()
    position = blocks[-1].position + 1 if blocks else 0
    for block in reversed(blocks):
        if block.message not in seen and len(seen) == count:
            return position
        seen.add(block.message)
        position = block.position
    return position


STRATEGY = Strategy(
    name="window",
    order=90,
    title="Sliding window",
    does="Keeps the first messages, a short summary, and the newest messages.",
    event="window",
    propose=window,
    parameters=Window,
    mark=MARK,
    docs="sliding-window",
    remarks=window_remarks,
)
