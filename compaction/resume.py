"""What of a state is stored beside blocks and revisions, and how it goes on from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compaction.context import Block
from compaction.edits import Revision
from compaction.ranges import ranges_of
from compaction.recitation.layers import ending_of
from compaction.state import State, leave_for_good, make, pinned, set_pinned, take_in


def follow(state: State, revision: Revision) -> None:
    """Take over a revision that another process made, without asking any strategy."""
    state.touched = None
    for edit in revision.edits:
        make(state, edit, revision.number, revision.step)
    state.made.append(revision)
    state.step = max(state.step, revision.step)


def marks_of(state: State) -> dict[str, Any]:
    """What must be kept beside blocks and revisions to go on from them; plain JSON values."""
    return {
        "step": state.step,
        "last": state.last,
        "window": state.window,
        "hidden": state.hidden,
        "scale": state.scale,
        "marks": [dict(mark) for mark in state.marks],
        "failures": list(state.failures),
        "waiting": list(state.waiting),
        "pins": list(pinned(state)),
        "gone": [[one.start, one.stop - 1] for one in ranges_of(state.gone)],
    }


def resume(
    state: State,
    arrived: Iterable[tuple[int, Block]],
    revisions: Iterable[Revision],
    marks: Mapping[str, Any],
) -> State:
    """Bring a state, new or older, to what is stored; it goes on as the one that was.

    `arrived` are the originals taken in since, not pinned, with the step before which each
    arrived; `revisions` those made since; `marks` what `marks_of` gave.
    """
    for step, block in arrived:
        take_in(state, block, step)
    for revision in revisions:
        follow(state, revision)
    state.step, state.window = marks["step"], marks["window"]
    state.hidden, state.scale = marks["hidden"], marks.get("scale")
    state.last = marks.get("last")
    state.marks = [dict(mark) for mark in marks["marks"]]
    state.failures, state.waiting = list(marks["failures"]), list(marks["waiting"])
    for place in set(pinned(state)) ^ set(marks["pins"]):
        set_pinned(state, place, pinned=place in marks["pins"])
    leave_for_good(state, {p for one in marks["gone"] for p in range(one[0], one[1] + 1)})
    state.ending = ending_of(state)
    return state
