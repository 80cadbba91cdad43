"""What holds for every policy on every session."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Context, composition, context_of, total
from compaction.context.edits import apply, context_at
from compaction.context.invariants import broken_by, violations
from compaction.context.session import Session
from compaction.fold.fold import Arrival, OutOfOrder, advance, start
from compaction.policies.policy import Policy
from compaction.proposals.plan import Means
from compaction.simulation.simulate import Run, simulate
from compaction.strategies import entered_short
from compaction.summaries.extract import extractive
from tests.build import Talk, rough
from tests.compaction.talks import policies, talks

MEANS = Means(rough, extractive)


def _born_by(session: Session, step: int) -> Context:
    return context_of(block for block in session.blocks if block.born <= step)


def _replayed(session: Session, run: Run, step: int) -> Context:
    """The context at a step by brute force: every revision's edits, one after the other."""
    context: Context = {}
    for number in range(1, step + 1):
        context.update((block.position, block) for block in session.blocks if block.born == number)
        for revision in run.revisions:
            if revision.step == number:
                context = apply(context_of(context.values()), revision.edits)
    return context_of(context.values())


@given(talks(), policies())
@settings(max_examples=150)
def test_nothing_breaks_and_nothing_is_refused(session: Session, policy: Policy) -> None:
    run = simulate(session, policy, rough)
    assert run.refusals == ()
    known = {entry.block.id for entry in run.entries}
    for step in run.steps:
        context = context_at(run.entries, step.step)
        assert list(context) == sorted(context)
        originals = _born_by(session, step.step)
        inherited = set(violations(originals, known))
        assert [one for one in violations(context, known) if one not in inherited] == []
        for place, block in originals.items():
            if block.pinned or block.kind == "system":
                assert context[place] == block


@given(talks(), policies())
@settings(max_examples=100)
def test_context_and_tokens_at_any_step_match_brute_force(session: Session, policy: Policy) -> None:
    run = simulate(session, policy, rough)
    revisions = {revision.step: revision for revision in run.revisions}
    previous: Context = {}
    for step in run.steps:
        context = context_at(run.entries, step.step)
        assert context == _replayed(session, run, step.step)
        assert step.total - step.recited == total(context)
        kinds = composition(context)
        assert sum(step.by_kind) == step.total - step.recited
        assert sorted(t for t in step.by_kind if t) == sorted(kinds.values())
        shared = 0
        for old, new in zip(previous.values(), context.values(), strict=False):
            if old != new:
                break
            shared += old.tokens
        assert step.unchanged_prefix <= shared
        if step.step not in revisions:
            assert step.unchanged_prefix == total(previous)
        made = [(p, b) for p, b in context.items() if b.replaces is not None]
        stubs = [place for place, block in made if not entered_short(block)]
        end = max(stubs, default=-1)
        assert step.frontier == sum(b.tokens for p, b in context.items() if p <= end)
        if step.step in revisions:
            revision = revisions[step.step]
            fresh = sum(b.tokens for b in session.blocks if b.born == step.step)
            assert revision.tokens_before == total(previous) + fresh
            assert revision.tokens_after == step.total - step.recited
        previous = context


@given(talks(), policies())
@settings(max_examples=100)
def test_every_original_can_be_had_again(session: Session, policy: Policy) -> None:
    run = simulate(session, policy, rough)
    first = {entry.block.id: entry for entry in run.entries}
    for block in session.blocks:
        if block.born <= len(session.calls):
            assert first[block.id].block is block
    closed = {entry.block.id for entry in run.entries if entry.closed_by is not None}
    named = {target for r in run.revisions for edit in r.edits for target in edit.targets}
    assert closed == named
    originals = {block.id: block for block in session.blocks}
    for revision in run.revisions:
        for edit in revision.edits:
            stub = edit.replacement
            if stub is None:  # thinking alone leaves without one
                assert {originals[name].type for name in edit.targets} == {"thinking"}
                continue
            assert stub.replaces == edit.targets[0]
            assert (
                stub.sha == hashlib.sha256(stub.text.encode("utf-8", "surrogatepass")).hexdigest()
            )
            for name in stub.refs:
                assert f"{name}@{originals[name].sha[:8]}" in stub.text


@given(talks(), policies())
@settings(max_examples=60)
def test_a_fold_resumed_from_its_parts_gives_the_same(session: Session, policy: Policy) -> None:
    whole = simulate(session, policy, rough)
    again = simulate(session, policy, rough)
    assert dataclasses.asdict(whole) == dataclasses.asdict(again)
    state = start(policy, session.window, MEANS, session.hidden)
    revisions = []
    last = None
    for call in session.calls:
        fresh = tuple(block for block in session.blocks if block.born == call.step)
        state, revision = advance(state, Arrival(call.step, fresh, call.at, last=last))
        last = call.at
        if revision is not None:
            revisions.append(revision)
    assert tuple(revisions) == whole.revisions
    assert [dataclasses.asdict(e) for e in state.entries] == [
        dataclasses.asdict(e) for e in whole.entries
    ]


@given(talks(), policies(), st.integers(1, 40))
@settings(max_examples=60)
def test_the_future_never_changes_the_past(session: Session, policy: Policy, cut: int) -> None:
    """A fold over the first steps alone is the beginning of the fold over all."""
    calls = session.calls[:cut]
    part = dataclasses.replace(session, calls=calls)
    short, long = simulate(part, policy, rough), simulate(session, policy, rough)
    assert long.steps[: len(calls)] == short.steps
    assert long.revisions[: len(short.revisions)] == short.revisions


@given(talks(), policies())
@settings(max_examples=60)
def test_prefix_tokens_at_every_position(session: Session, policy: Policy) -> None:
    state = start(policy, session.window, MEANS)
    for call in session.calls:
        fresh = tuple(block for block in session.blocks if block.born == call.step)
        state, _ = advance(state, Arrival(call.step, fresh))
    for position in range(len(session.blocks) + 2):
        wanted = sum(b.tokens for p, b in state.standing.items() if p < position)
        assert state.prefix_tokens(position) == wanted


def test_arrivals_out_of_order_are_refused_and_leave_the_state_alone() -> None:
    talk = Talk()
    block = talk.user("hello")
    state, _ = advance(start(Policy("none"), 1_000, MEANS), Arrival(1, (block,)))
    with pytest.raises(OutOfOrder, match="step 0 after step 1"):
        advance(state, Arrival(0))
    with pytest.raises(OutOfOrder, match="position 0 after 0"):
        advance(state, Arrival(2, (block,)))
    assert (state.step, state.total, len(state.entries)) == (1, block.tokens, 1)


@pytest.mark.fault("B12")
def test_broken_by_sees_a_split_response_and_a_changed_pin() -> None:
    talk = Talk()
    talk.user("go", pinned=True)
    talk.respond()
    talk.think("hm")
    one, two = talk.call("Read", {"path": "a"}), talk.call("Read", {"path": "b"})
    talk.result(one, "A")
    talk.result(two, "B")
    before = context_of(talk.blocks)
    known = {block.id for block in talk.blocks}

    def rules(after: Context) -> set[str]:
        return {one.rule for one in broken_by(before, after, known)}

    assert rules(before) == set()
    assert rules({p: b for p, b in before.items() if p not in (2, 4)}) == {"thinking"}
    assert rules({p: b for p, b in before.items() if p != 1}) == set(), "thinking may leave alone"
    note = dataclasses.replace(before[1], id="n", type="text", replaces=before[1].id)
    assert rules(before | {1: note}) == set()
    assert rules({0: before[0], 1: note, 2: before[2], 4: before[4]}) == {"thinking"}
    assert rules({0: before[0], 1: dataclasses.replace(note, kind="summary")}) == set()
    assert rules({p: b for p, b in before.items() if p != 4}) == {"pair"}
    assert "pin" in rules({p: b for p, b in before.items() if p != 0})
    assert rules(before | {4: dataclasses.replace(before[4], replaces="gone")}) == {"reference"}
