"""Sliding window: keep the first messages, a short summary, and the newest messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.proposals.boundaries import largest
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.protect import FIXED_KINDS
from compaction.proposals.strategy import Place, Remark, Strategy
from compaction.summaries.settings_lint import summary_remarks
from compaction.summaries.spans import span_of, summary_edit


@dataclass(frozen=True, slots=True)
class Window:
    """How the window is cut.

    3 primers, 20 recents, 0.75, half of it and 400 tokens: Shannon, whose cases also count
    `messages` (30, 75, 100). `progress` and `rearm` as for compaction.
    """

    primers: int = field(
        default=3,
        metadata={
            "min": 0,
            "max": 1_000,
            "first": True,
            "drawn": range(6),
            "help": "Messages to keep at the beginning.",
        },
    )
    recents: int = field(
        default=20,
        metadata={
            "min": 0,
            "max": 1_000,
            "tries": (10, 20, 40, 80),
            "first": True,
            "drawn": range(21),
            "help": "Newest messages to keep, as far as they fit.",
        },
    )
    trigger: float = field(
        default=0.75,
        metadata={
            "min": 0.1,
            "max": 0.95,
            "first": True,
            "drawn": (0.4, 0.75),
            "help": "Summarize the messages between them at this share of the budget.",
        },
    )
    target: float = field(
        default=0.375,
        metadata={
            "min": 0.05,
            "max": 0.9,
            "tries": (0.25, 0.375, 0.5, 0.7),
            "first": True,
            "drawn": (0.05, 0.3, 0.6, 0.9),
            "help": "Reduce the context to this share of the budget.",
        },
    )
    budget: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000_000,
            "tries": (16_000, 32_000, 64_000, 128_000),
            "first": True,
            "drawn": (0, 600, 3_000),
            "help": "Budget of the conversation in tokens; 0 for the model's window minus the "
            "reserve.",
        },
    )
    messages: int = field(
        default=0,
        metadata={
            "min": 0,
            "max": 10_000,
            "first": True,
            "drawn": (0, 5, 20),
            "help": "Also summarize above this many messages; 0 for no limit.",
        },
    )
    summary_tokens: int = field(
        default=400,
        metadata={"min": 100, "max": 50_000, "help": "Maximum size of the summary, in tokens."},
    )
    progress: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "drawn": (0.0, 0.1, 0.3),
            "help": "Skip a summary that would free less than this share of the context.",
        },
    )
    rearm: float = field(
        default=0.10,
        metadata={
            "min": 0.0,
            "max": 0.9,
            "drawn": (0.0, 0.1, 0.3),
            "help": "Try again only after the context has grown by this share of the budget.",
        },
    )


MARK: Mark = {"rearm": 0}


def window(view: View, parameters: Window) -> Proposal:
    """Replace the messages between primers and recents by a summary.

    Cuts are between groups. Fewer recents stay if they would not fit the target; the hot cache
    always stays. Does nothing below the trigger, if the messages to keep exceed it, or if too
    little would be freed. If those are between target and trigger, the cut is made and the reason
    names what is too large. Source: Shannon; cuts between groups, recents counted in tokens too,
    and the rules for not starting are our choice.
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


CROWD = 50
"""Recents that, with a single primer, leave nothing to summarize and no task (Shannon)."""
LEAST_SUMMARY = 200
"""Minimum tokens for the summary's form: half of what the sources use (our choice)."""
MESSAGE = 100
"""Minimum average tokens of a message, to estimate how many recents fit (our choice)."""


def _remarks(place: Place, given: Window) -> Iterator[Remark]:
    yield from summary_remarks(given, LEAST_SUMMARY)
    if given.primers <= 1 and given.recents >= CROWD:
        text = (
            f"With {given.primers} primers and {given.recents} recents, the task is soon described "
            f"in the summary only. Keep 3 primers and 20 recents."
        )
        yield Remark("primers", text, "warning")
    if 0 < given.messages <= given.primers + given.recents:
        text = (
            f"{given.primers} primers and {given.recents} recents cover all {given.messages} "
            f"messages, so nothing is left to summarize. Set it to about "
            f"{2 * (given.primers + given.recents)}."
        )
        yield Remark("messages", text, "warning")
    target = int(given.target * (given.budget or place.room))
    if given.recents * MESSAGE > target:
        text = (
            f"{given.recents} messages rarely fit the target of {target:,} tokens, so fewer stay. "
            f"Keep at most {max(target // MESSAGE, 1):,}, or raise the target."
        )
        yield Remark("recents", text, "note")
    if given.target >= given.trigger:
        text = (
            "The target is not below the trigger, so the context is cut again at once. Set it to "
            "about half of the trigger."
        )
        yield Remark("target", text, "warning")


STRATEGY = Strategy(
    name="window",
    order=90,
    title="Sliding window",
    glyph="✂",
    does="Keeps the first messages, a short summary, and the newest messages.",
    when="at a share of the budget, or a number of messages",
    event="window",
    propose=window,
    parameters=Window,
    mark=MARK,
    docs="sliding-window",
    remarks=_remarks,
)
