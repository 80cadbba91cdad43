"""Undo, pins, and originals that the agent removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from compaction.context.blocks import Block
from compaction.context.edits import (
    BY_THE_AGENT,
    CannotUndo,
    Edit,
    Entry,
    RefusedEdits,
    Trigger,
    amount,
)
from compaction.fold.objections import objection_to_restoring
from compaction.fold.state import State, leave_for_good, set_pinned

SETUP = frozenset({"tools", "system"})


def left(
    state: State, gone: Iterable[int], compaction: Trigger | None = None
) -> tuple[Trigger, Edit] | None:
    """Return the edit that removes originals which the agent itself removed, in a `compaction` if
    it summarized them; None without any.

    A replacement that covers any of them is removed too, and the other originals it covered return,
    because it would describe what never happened. These edits are not checked against the rules.
    """
    fresh = {place for place in gone if place in state.originals} - state.gone
    for place in fresh:
        set_pinned(state, place, pinned=False)
    leave_for_good(state, fresh)
    targets = [
        block
        for block in state.standing.values()
        if (block.position in fresh if block.replaces is None else _mentions(state, block, fresh))
    ]
    if not targets:
        return None
    back = {place for block in targets for place in state.positions_of(block)} - state.gone
    closing = {block.position for block in targets}
    back = {place for place in back if place in closing or place not in state.standing}
    trigger: Trigger
    if all(state.originals[place].kind in SETUP for place in fresh):
        trigger, strategy, reason = "setup", "setup", "replaced by a newer setup"
    elif compaction is not None:
        trigger, strategy, reason = compaction, "compaction", "the agent summarized its history"
    else:
        trigger, strategy, reason = "rewind", "rewind", "the agent went back"
    restores = tuple(_as_last_seen(state, sorted(back)))
    return trigger, Edit(strategy, tuple(block.id for block in targets), None, reason, restores)


def _mentions(state: State, block: Block, places: set[int]) -> bool:
    return not places.isdisjoint(state.positions_of(block))


def _as_last_seen(state: State, places: list[int]) -> list[Block]:
    """Return for each position its original, or the last replacement of it alone."""
    if not places:
        return []
    wanted = set(places)
    last: dict[int, Block] = {}
    for entry in state.entries:
        place = entry.block.position
        if place in wanted and state.stands_alone(entry.block, place):
            last[place] = entry.block
    return [last[place] for place in places]


def pinned_again(state: State, places: Iterable[int]) -> Edit | None:
    """Pin originals; return the edit that restores those not in the context, None if there are
    none.

    Blocks that share a call pair or a response with one are restored too. A summary at the position
    of one moves to the next position it covers. If that would break the context, nothing is
    restored and `state.refusals` says why.
    """
    missing: set[int] = set()
    for place in places:
        if place not in state.originals or place in state.gone:
            continue
        set_pinned(state, place, pinned=True)
        original = state.originals[place]
        if state.standing.get(place) is not original:
            missing.add(place)
    ties = state.groups.companions(state.originals[place] for place in missing)
    missing.update(tie for tie in ties if not _stands_in_some_form(state, tie))
    missing -= state.gone
    if not missing:
        return None
    closing = [state.standing[place] for place in sorted(missing) if place in state.standing]
    moved = [block for block in (_moved(state, one, missing) for one in closing) if block]
    restores = sorted(
        chain((state.originals[place] for place in missing), moved), key=lambda b: b.position
    )
    targets = tuple(block.id for block in closing)
    edit = Edit("pin", targets, None, amount(len(missing), "block"), tuple(restores))
    if reason := objection_to_restoring(state, edit):
        state.refusals.append(RefusedEdits(state.step, "pin", reason))
        return None
    return edit


def _stands_in_some_form(state: State, place: int) -> bool:
    block = state.standing.get(place)
    return block is not None and state.stands_alone(block, place)


def _moved(state: State, block: Block, taken: set[int]) -> Block | None:
    """Move a summary to the next free position it covers; None if it covers no other."""
    for place in state.positions_of(block):
        if place not in taken and place not in state.standing and place not in state.gone:
            original = state.originals[place]
            return replace(
                block,
                id=f"{block.id}>{place}",
                position=place,
                message=original.message,
                turn=original.turn,
            )
    return None


def taken_back(state: State, number: int) -> Edit:
    """Return the edit that undoes a revision. Raises CannotUndo."""
    if not 1 <= number <= state.revisions:
        raise CannotUndo(f"There is no revision {number}.")
    if state.made[number - 1].trigger in BY_THE_AGENT:
        raise CannotUndo("The agent itself made that change; only the agent can undo it.")
    opened = [one for one in state.entries if one.opened_by == number != one.closed_by]
    for entry in opened:
        stands = state.standing.get(entry.block.position)
        if stands is None or stands.id != entry.block.id:
            raise CannotUndo(f"Revision {entry.closed_by} depends on it: undo that one first.")
    outputs = {entry.block.position: entry.block for entry in opened}
    restores = [
        entry.block if entry.block.replaces else state.originals[entry.block.position]
        for entry in _replaced_by(state, number)
        if entry.block.position in outputs or entry.block.position not in state.standing
    ]
    if not outputs and not restores:
        raise CannotUndo("Nothing is left to undo.")
    edit = Edit(
        "undo",
        tuple(block.id for _, block in sorted(outputs.items())),
        None,
        f"undid revision {number}",
        tuple(sorted(restores, key=lambda block: block.position)),
    )
    if reason := objection_to_restoring(state, edit):
        raise CannotUndo(f"The context would break: {reason}.")
    return edit


def _replaced_by(state: State, number: int) -> list[Entry]:
    return [
        one
        for one in state.entries
        if one.closed_by == number != one.opened_by and one.block.position not in state.gone
    ]
