"""Layers 3 and 4 of a context: the content after its last cache breakpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compaction.context.blocks import Block, Ending
from compaction.context.edits import BY_THE_AGENT, Entry
from compaction.fold.state import State
from compaction.policies.policy import Policy
from compaction.proposals.plan import Count
from compaction.recitation.recite import Recital, recitation
from compaction.recitation.room import LineTokens
from compaction.seen.reading import reads
from compaction.strategies import entered_short
from compaction.strategies.offload import Offload


def ending_at(
    policy: Policy,
    originals: Iterable[Block],
    context: Sequence[Block],
    count: Count,
    at: int | None = None,
    *,
    one_turn: bool = False,
) -> Ending:
    """Return the end of a context under a policy.

    Depends on the context, all originals so far (both in order, without those the agent removed),
    when the newest call began, and whether the model takes system messages for one turn. Linear in
    the originals; a state at its newest step has the result in `State.ending`.
    """
    shortened = [one for one in context if one.replaces is not None and one.type == "tool_result"]
    recital = Recital() if policy.recite is None else Recital.of(originals)
    sources = recital, reversed(shortened)
    return _ending(policy, reversed(context), sources, LineTokens(count), at, own=one_turn)


def _ending(
    policy: Policy,
    newest_first: Iterable[Block],
    sources: tuple[Recital, Iterable[Block]],
    lines: LineTokens,
    at: int | None,
    *,
    own: bool,
) -> Ending:
    once: tuple[int, ...] = ()
    steps = [one.parameters for one in policy.steps if isinstance(one.parameters, Offload)]
    reading = [one for one in steps if is_for_one_step(one)]
    if reading:
        once = _once(_hot(newest_first), reading)
    if policy.recite is None:
        return Ending(once)
    text = recitation(*sources, policy.recite, lines, at, own=own)
    tokens = sum(lines[line] for line in text.split("\n")) if text else 0
    return Ending(once, text, tokens)


def ending_of(state: State) -> Ending:
    """Return the end of the current context."""
    shortened = (state.standing[place] for place in reversed(state.shortened))
    newest_first = reversed(state.standing.values())
    sources = state.recital, shortened
    own = state.means.one_turn
    return _ending(state.policy, newest_first, sources, state.lines, state.last, own=own)


def ending_then(
    state: State,
    context: Sequence[Block],
    head: int,
    arrived: Callable[[Entry], bool],
    at: int | None = None,
    *,
    one_turn: bool | None = None,
) -> Ending:
    """Return the end of an earlier context: after revision `head`, with the originals that had
    arrived.

    `at` is when the newest call began then, `one_turn` whether the model took system messages for
    one turn then; None if as now. Originals that the agent removed later are still
    recited.
    """
    later = {
        made.number for made in state.made if made.number > head and made.trigger in BY_THE_AGENT
    }
    back = {
        place
        for entry in state.entries
        if entry.closed_by in later
        for place in state.positions_of(entry.block)
    }
    originals = (
        entry.block
        for entry in state.entries
        if entry.opened_by is None
        and arrived(entry)
        and (entry.block.position in back or entry.block.position not in state.gone)
    )
    one_turn = state.means.one_turn if one_turn is None else one_turn
    return ending_at(state.policy, originals, context, state.means.count, at, one_turn=one_turn)


def is_for_one_step(parameters: Offload) -> bool:
    """Return whether an offload keeps results for a single step only (layer 3)."""
    one = parameters.age == parameters.batch == 1 and parameters.unit == "steps"
    return one and bool(parameters.only)


def _hot(newest_first: Iterable[Block]) -> list[Block]:
    """Return the blocks since the response that made the last tool call, in order."""
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
