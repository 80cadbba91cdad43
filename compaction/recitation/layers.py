"""Layers 3 and 4 of a context: what lies after its last cache breakpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compaction.context import Block, Ending
from compaction.edits import Entry
from compaction.files.reading import reads
from compaction.plan import Count
from compaction.policies.policy import Policy
from compaction.recitation.recite import Recital, recitation
from compaction.recitation.room import Lines
from compaction.state import State
from compaction.strategies.offload import Offload
from compaction.stubs import entered_short


def ending_at(
    policy: Policy,
    originals: Iterable[Block],
    context: Sequence[Block],
    count: Count,
    at: int | None = None,
) -> Ending:
    """The end of a context under a policy: a function of the context and of all originals so far,
    both in order, without those that the agent took back, and of when the newest call began.

    Work is linear in the originals; a state at its newest step has it at hand (`State.ending`).
    """
    shortened = [one for one in context if one.replaces is not None and one.type == "tool_result"]
    recital = Recital() if policy.recite is None else Recital.of(originals)
    return _ending(policy, reversed(context), (recital, reversed(shortened)), Lines(count), at)


def _ending(
    policy: Policy,
    newest_first: Iterable[Block],
    told: tuple[Recital, Iterable[Block]],
    lines: Lines,
    at: int | None,
) -> Ending:
    once: tuple[int, ...] = ()
    steps = [one.parameters for one in policy.steps if isinstance(one.parameters, Offload)]
    reading = [one for one in steps if is_for_one_step(one)]
    if reading:
        once = _once(_hot(newest_first), reading)
    if policy.recite is None:
        return Ending(once)
    text = recitation(*told, policy.recite, lines, at)
    tokens = sum(lines[line] for line in text.split("\n")) if text else 0
    return Ending(once, text, tokens)


def ending_of(state: State) -> Ending:
    """The end of the context as it stands; work is that of writing it."""
    shortened = (state.standing[place] for place in reversed(state.shortened))
    newest_first = reversed(state.standing.values())
    told = state.recital, shortened
    return _ending(state.policy, newest_first, told, state.lines, state.last)


def ending_then(
    state: State,
    context: Sequence[Block],
    head: int,
    arrived: Callable[[Entry], bool],
    at: int | None = None,
) -> Ending:
    """The end of an earlier context of a state: after revision `head`, of originals that had
    arrived then; `at` is when the newest call began then. What the agent took back later is still
    recited."""
    later = {
        made.number
        for made in state.made
        if made.number > head and made.trigger in ("rewind", "setup")
    }
    back = {
        place
        for entry in state.entries
        if entry.closed_by in later
        for place in state.told_by(entry.block)
    }
    originals = (
        entry.block
        for entry in state.entries
        if entry.opened_by is None
        and arrived(entry)
        and (entry.block.position in back or entry.block.position not in state.gone)
    )
    return ending_at(state.policy, originals, context, state.means.count, at)


def is_for_one_step(parameters: Offload) -> bool:
    """Whether what an offload takes stands for a single step: that is layer 3."""
    one = parameters.age == parameters.batch == 1 and parameters.unit == "steps"
    return one and bool(parameters.only)


def _hot(newest_first: Iterable[Block]) -> list[Block]:
    """The blocks from the response on that made the last tool call, in order."""
    found: list[Block] = []
    last: Block | None = None
    for block in newest_first:
        if last is not None and (block.call is None or block.call != last.call):
            break
        if block.type == "tool_use":
            last = block
        found.append(block)
    return found[::-1]


def _once(blocks: Sequence[Block], reading: Sequence[Offload]) -> tuple[int, ...]:
    uses = {block.tool_call: block for block in blocks if block.type == "tool_use"}
    return tuple(
        block.position
        for block in blocks
        if block.type == "tool_result"
        and (block.replaces is None or entered_short(block))
        and any(_leaves(block, uses.get(block.tool_call), one) for one in reading)
    )


def _leaves(block: Block, use: Block | None, parameters: Offload) -> bool:
    stays = block.pinned or (block.error and parameters.keep_failures)
    return not stays and block.tokens > parameters.minimum and reads(use, parameters.only)
