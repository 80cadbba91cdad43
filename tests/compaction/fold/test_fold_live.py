"""The fold of a live session: cut and resumed anywhere, with pins, rewinds, undo and requests."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Block, context_of, total
from compaction.context.edits import CannotCompact, CannotUndo, Revision, apply, context_at
from compaction.context.session import Session
from compaction.fold.fold import Arrival, State, advance, marks_of, resume, start
from compaction.fold.on_request import compact_now, undo
from compaction.policies.policy import Policy
from compaction.proposals.plan import Means
from compaction.summaries.extract import extractive
from tests.build import rough
from tests.compaction.talks import policies, talks

MEANS = Means(rough, extractive)

Act = tuple[str, int]
acts = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "step", "again", "pin", "unpin", "gone", "undo", "ask"]),
        st.integers(0, 200),
    ),
    max_size=60,
)


def _fresh(session: Session, state: State, step: int) -> tuple[Block, ...]:
    """Originals born by a step that the state has not taken in."""
    blocks = session.blocks[len(state.arrivals) :]
    return tuple(block for block in blocks if block.born <= step)


def _act(state: State, session: Session, act: Act) -> Revision | None:
    """One thing that happens to a live session; what it did to the context."""
    name, number = act
    if name in ("step", "again"):
        step = state.step + (name == "step")
        prompt = state.total + number * 10 if number > 150 else None
        return advance(state, Arrival(step, _fresh(session, state, step), prompt=prompt))[1]
    if name == "undo":
        try:
            return undo(state, state.revisions - number % 3)
        except CannotUndo:
            return None
    if name == "ask":
        try:
            return compact_now(state, "be brief")
        except CannotCompact:
            return None
    if not state.arrivals:
        return None
    place = number % len(state.arrivals)
    places = {
        "pin": {"pinned": (place,)},
        "unpin": {"unpinned": (place,)},
        "gone": {"gone": tuple(range(place, min(place + 4, len(state.arrivals))))},
    }[name]
    return advance(state, Arrival(state.step, (), **places))[1]  # type: ignore[arg-type]


def _said(state: State) -> dict[str, Any]:
    """All that a state is, whatever the order in which it came about."""
    entries = sorted(
        (e.block.position, e.from_step, e.opened_by or 0, e.block.id, e.to_step, e.closed_by)
        for e in state.entries
    )
    return {
        "standing": list(state.standing.items()),
        "entries": entries,
        "marks": marks_of(state),
        "made": [dataclasses.asdict(revision) for revision in state.made],
        "sums": [state.prefix_tokens(place) for place in range(len(state.arrivals) + 1)],
        "by_kind": state.by_kind,
        "total": (state.total, state.frontier, state.stubs),
        "covers": state.covers,
        "calls": (state.groups.pinned_calls, state.groups.pins),
        "end": (state.shortened, state.recital, state.ending),
    }


def _rebuilt(state: State, session: Session, policy: Policy, held: State | None = None) -> State:
    """The state from what would be stored, or an older one brought up to it."""
    marks = json.loads(json.dumps(marks_of(state)))
    arrival = {
        e.block.position: e.from_step
        for e in state.entries
        if e.block.replaces is None and e.opened_by is None
    }
    held = held or start(policy, session.window, MEANS, session.hidden)
    taken = session.blocks[len(held.arrivals) : len(state.arrivals)]
    arrived = [(arrival[block.position], block) for block in taken]
    return resume(held, arrived, state.made[held.revisions :], marks)


@given(talks(), policies(), acts, st.tuples(*[st.integers(0, 60)] * 3).map(sorted))
@settings(max_examples=250)
def test_a_fold_rebuilt_from_what_is_stored_goes_on_as_the_one_that_was(
    session: Session, policy: Policy, acts: list[Act], cuts: list[int]
) -> None:
    """Rebuilt from nothing at the first cut, left behind at the second, caught up at the third."""
    first, second, third = cuts
    whole = start(policy, session.window, MEANS, session.hidden)
    for act in acts[:first]:
        _act(whole, session, act)
    other = _rebuilt(whole, session, policy)
    for act in acts[first:second]:
        assert _act(other, session, act) == _act(whole, session, act)
    for act in acts[second:third]:
        _act(whole, session, act)
    other = _rebuilt(whole, session, policy, held=other)
    assert _said(other) == _said(whole)
    for act in acts[third:]:
        assert _act(other, session, act) == _act(whole, session, act)
    assert _said(other) == _said(whole)


@given(talks(), policies(), acts)
@settings(max_examples=250)
def test_whatever_happens_the_context_holds_together(
    session: Session, policy: Policy, acts: list[Act]
) -> None:
    state = start(policy, session.window, MEANS, session.hidden)
    context: dict[int, Block] = {}
    taken = 0
    for act in acts:
        pinned = set(state.groups.pins)
        made = _act(state, session, act)
        context.update((b.position, b) for b in session.blocks[taken : len(state.arrivals)])
        taken = len(state.arrivals)
        if made is not None:
            before = len(context) and total(context_of(context.values()))
            assert made.tokens_before == before
            context = apply(context_of(context.values()), made.edits)
        ids = [block.id for block in context_of(context.values()).values()]
        assert [block.id for block in state.standing.values()] == ids
        assert list(state.standing) == sorted(state.standing)
        assert state.total == total(state.standing) == state.prefix_tokens(1 << 40)
        now = {b.id for b in context_at(state.entries, state.step).values()}
        assert now == set(ids)
        for place in state.groups.pins:
            # A pin whose restoring would have broken the context is reported, not forced.
            stands = state.standing.get(place) == state.originals[place]
            assert stands or state.refusals or place not in pinned
        for place in state.gone:
            assert place not in state.standing or place not in state.positions_of(
                state.standing[place]
            )
    assert not [r for r in state.refusals if r.strategy != "pin"]


@given(talks(), policies(), acts)
@settings(max_examples=100)
def test_undoing_all_that_can_be_undone_gives_the_originals(
    session: Session, policy: Policy, acts: list[Act]
) -> None:
    state = start(policy, session.window, MEANS, session.hidden)
    for name, number in acts:
        if name in ("step", "again", "ask"):
            _act(state, session, (name, number))
    for number in range(state.revisions, 0, -1):
        undo(state, number)
    assert list(state.standing.values()) == list(session.blocks[: len(state.arrivals)])
