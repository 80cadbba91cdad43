"""Thinking that a change before it has made invalid, for models that bind it (prices/binding.py).

A context keeps an unbroken run of the thinking blocks: those before the first change. Everything
later leaves with the change that made it invalid, and never returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compaction.context.blocks import Block
from compaction.context.edits import Edit
from compaction.fold.state import State, make
from compaction.render.prefix import is_response, is_system

NAME = "thinking"
"""Names the edit; no policy has such a strategy."""


def invalid_thinking(state: State) -> Edit | None:
    """Remove the thinking after the first position changed since `touched` was reset; return the
    edit, None if there is none."""
    first = state.touched
    if first is None or not state.means.binds:
        return None
    later = [block for place, block in state.standing.items() if place > first]
    return _without(state, later, "something before it changed")


def unbound_by(state: State, arrived: Sequence[Block], retooled: bool) -> Edit | None:
    """Remove thinking that what has just arrived makes invalid; return the edit, None if there is
    none.

    That is all thinking if the system prompt grew or the list of tools changed after the newest
    answer was made, which stand before every message; thinking that has just arrived, if the prompt
    it answers ended with a recitation, which is no longer there, or was changed by a request since.
    A recitation in a system message is still there. After a switch from a model that does not bind,
    it is what stayed although something before it had changed.
    """
    if not state.means.binds:
        state.bound = False
        return None
    switched, state.bound = not state.bound, True
    if retooled:
        return _without(state, state.standing.values(), "the list of tools changed")
    if any(_is_prompt(state, block) for block in arrived) and len(arrived) < len(state.arrivals):
        return _without(state, state.standing.values(), "the system prompt changed")
    if switched and (first := _first_changed(state)) is not None:
        later = [block for place, block in state.standing.items() if place >= first]
        return _without(state, later, "something before it changed")
    if state.ending.text and not (state.means.one_turn and _answers(state, arrived)):
        return _without(state, arrived, "the recited text before it changed")
    if state.requested is not None:
        blocks = (one for one in state.standing.values() if one.born >= state.step)
        later = [block for block in blocks if block.position > state.requested]
        return _without(state, later, "something before it changed")
    return None


def _first_changed(state: State) -> int | None:
    """Return the lowest position that differs from what arrived, or may have been recited after;
    None if there is none."""
    if state.policy.recite is not None:
        return 0
    places = (place for place in state.arrivals if place not in state.gone)
    return next((p for p in places if state.standing.get(p) is not state.originals[p]), None)


def _is_prompt(state: State, block: Block) -> bool:
    """Return whether a block becomes part of the system prompt (see `render.normalise`)."""
    if not state.means.one_turn or not is_system(block):
        return block.role == "system"
    others = (one for one in state.standing.values() if is_system(one))
    return next(others, block).message == block.message


def _answers(state: State, arrived: Sequence[Block]) -> bool:
    """Return whether what arrived begins with a response, and the context before it did not end
    with one."""
    if not arrived or not is_response(arrived[0]) or len(arrived) == len(state.arrivals):
        return False
    return not is_response(state.originals[state.arrivals[-len(arrived) - 1]])


def _without(state: State, blocks: Iterable[Block], reason: str) -> Edit | None:
    gone = [one for one in blocks if one.type == "thinking" and one.replaces is None]
    if not gone:
        return None
    tokens = sum(block.tokens for block in gone)
    why = f"{tokens} tokens of thinking are no longer valid: {reason}"
    edit = Edit(NAME, tuple(block.id for block in gone), None, why)
    make(state, edit, state.revisions + 1, state.step)
    return edit
