"""What happens to the fold of a live session: more before a call, pins, rewinds, undo, requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction.context.blocks import Block
from compaction.context.edits import CannotCompact, CannotUndo, Revision, amount
from compaction.context.invariants import violations
from compaction.context.session import Session
from compaction.fold.fold import Arrival, State, advance, end_of, follow, start
from compaction.fold.on_request import compact_now, undo
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.proposals.plan import Means, Span
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from compaction.summaries.extract import extractive
from tests.build import Talk, coding, rough

MEANS = Means(rough, extractive)


def _fresh(session: Session, state: State, step: int) -> tuple[Block, ...]:
    """Originals born by a step that the state has not taken in."""
    blocks = session.blocks[len(state.arrivals) :]
    return tuple(block for block in blocks if block.born <= step)


def _agent(steps: int, policy: Policy) -> State:
    session = coding(steps * 2, 100)
    state = start(policy, 200_000, MEANS)
    for call in session.calls[:steps]:
        advance(state, Arrival(call.step, _fresh(session, state, call.step)))
    return state


OFFLOAD = Policy("o", steps=(Step("offload", Offload(age=2, batch=2)),))


def test_a_step_may_be_advanced_again_with_what_came_since() -> None:
    talk = Talk()
    first, second = talk.user("one"), talk.user("two")
    state, _ = advance(start(OFFLOAD, 1_000, MEANS, hidden=7), Arrival(1, (first,)))
    state, revision = advance(state, Arrival(1, (second,)))
    assert revision is None
    assert (state.step, state.used) == (1, first.tokens + second.tokens + 7)
    assert [entry.from_step for entry in state.entries] == [1, 1]


def test_a_reported_prompt_counts_for_the_whole_step() -> None:
    talk = Talk()
    first, second = talk.user("one" * 50), talk.user("two" * 50)
    state, _ = advance(start(OFFLOAD, 1_000, MEANS), Arrival(1, (first,)))
    advance(state, Arrival(2, (), prompt=first.tokens + 100))
    advance(state, Arrival(2, (second,)))
    assert state.used == first.tokens + second.tokens + 100


def test_what_reported_prompts_teach_is_a_ratio_that_a_compaction_does_not_outlive() -> None:
    state = _agent(30, Policy("none"))
    step = state.step
    advance(state, Arrival(step + 1, prompt=state.counted + 700))
    assert (state.hidden, state.scale, state.billed) == (700, 1000, state.counted)
    advance(state, Arrival(step + 2, prompt=state.counted * 2))
    assert (state.hidden, state.scale, state.used) == (700, 2000, state.counted * 2)
    before = state.counted
    assert compact_now(state) is not None
    assert state.counted < before
    assert state.billed == state.counted * 2
    # A prompt of the context before says what it says of that one.
    advance(state, Arrival(step + 3, prompt=int(before * 1.5), sent=before - 700))
    assert (state.scale, state.used) == (1500, (state.counted * 1500 + 500) // 1000)
    advance(state, Arrival(step + 4))
    assert state.scale == 1500
    for prompt, scale in ((1, 500), (1 << 30, 3000), (state.counted, 1000)):
        advance(state, Arrival(state.step + 1, prompt=prompt))
        assert state.scale == scale


def test_pinning_what_was_offloaded_restores_it_and_keeps_it() -> None:
    state = _agent(12, OFFLOAD)
    stub = next(b for b in state.standing.values() if b.replaces and b.type == "tool_result")
    _, revision = advance(state, Arrival(state.step, pinned=(stub.position,)))
    assert revision is not None
    assert (revision.trigger, revision.edits[0].targets) == ("pin", (stub.id,))
    assert state.standing[stub.position].text == state.originals[stub.position].text
    assert state.standing[stub.position].pinned
    with pytest.raises(CannotUndo, match="pin"):
        undo(state, revision.number)
    advance(state, Arrival(state.step, unpinned=(stub.position,)))
    undo(state, revision.number)
    assert state.standing[stub.position] == stub


def _compacted() -> tuple[State, Block]:
    state = _agent(30, Policy("none"))
    revision = compact_now(state)
    assert revision is not None
    assert revision.trigger == "request"
    summary = revision.edits[0].replacement
    assert summary is not None
    return state, summary


def test_pinning_what_a_summary_stands_for_brings_back_the_whole_pair() -> None:
    state, summary = _compacted()
    result = next(
        block
        for block in state.originals.values()
        if block.type == "tool_result"
        and block.position not in state.standing
        # The pair at the summary's own place would make it move.
        and block.position > summary.position + 1
    )
    advance(state, Arrival(state.step, pinned=(result.position,)))
    back = {block.tool_call for block in state.standing.values() if block.type == "tool_use"}
    assert result.tool_call in back
    assert state.standing[result.position].text == result.text
    assert state.standing[summary.position] == summary
    assert violations(state.standing, state.known) == []


def test_a_summary_moves_on_where_a_pin_needs_its_place() -> None:
    state, summary = _compacted()
    _, revision = advance(state, Arrival(state.step, pinned=(summary.position,)))
    assert revision is not None
    assert state.standing[summary.position].text == state.originals[summary.position].text
    moved = [b for b in state.standing.values() if b.text == summary.text]
    assert [b.position > summary.position for b in moved] == [True]
    assert violations(state.standing, state.known) == []


def test_a_summary_that_tells_of_what_is_gone_gives_way_to_the_rest() -> None:
    state, summary = _compacted()
    answer = state.positions_of(summary)
    _, revision = advance(state, Arrival(state.step, gone=tuple(range(answer[-4], 1_000))))
    assert revision is not None
    assert revision.trigger == "rewind"
    assert max(state.standing) < answer[-4]
    assert all(block.replaces is None for block in state.standing.values())
    assert len(answer) - 4 <= len(state.standing)
    with pytest.raises(CannotUndo, match="agent itself"):
        undo(state, revision.number)
    _, nothing = advance(state, Arrival(state.step, pinned=(answer[-1],)))
    assert nothing is None, "what is gone stays gone"


def test_a_newer_setup_takes_the_place_of_the_old_one() -> None:
    talk = Talk()
    old, asked, new = talk.system("be brief"), talk.user("go"), talk.system("be careful")
    state, _ = advance(start(OFFLOAD, 1_000, MEANS), Arrival(1, (old, asked)))
    _, revision = advance(state, Arrival(2, (new,), gone=(old.position,)))
    assert revision is not None
    assert (revision.trigger, list(state.standing.values())) == ("setup", [asked, new])


def test_undo_is_refused_where_later_edits_rest_on_it() -> None:
    state = _agent(40, OFFLOAD)
    assert compact_now(state) is not None
    with pytest.raises(CannotUndo, match=f"Revision {state.revisions} depends"):
        undo(state, state.revisions - 1)
    for number in (0, -1, state.revisions + 1):
        with pytest.raises(CannotUndo, match="no revision"):
            undo(state, number)


def test_an_undo_can_be_undone_and_is_not_redone_by_the_policy() -> None:
    policy = Policy("c", steps=(Step("compact", Compact(trigger=0.5, summary_tokens=300)),))
    session = coding(80, 100)
    state = start(policy, 6_000, MEANS)
    made: list[Revision] = []
    for call in session.calls:
        _, revision = advance(state, Arrival(call.step, _fresh(session, state, call.step)))
        if revision is not None:
            made.append(revision)
            break
    summary = made[0].edits[0].replacement
    assert summary is not None
    back = undo(state, 1)
    assert (back.trigger, back.tokens_after) == ("undo", made[0].tokens_before)
    _, again = advance(state, Arrival(state.step + 1))
    assert again is None
    with pytest.raises(CannotUndo, match="Revision 2 depends"):
        undo(state, 1)
    undo(state, 2)
    assert summary in state.standing.values()


def test_a_summary_that_is_being_written_keeps_its_span_while_more_arrives() -> None:
    asked: list[Span] = []
    ready: dict[tuple[str, ...], str] = {}

    def summarize(span: Span) -> str | None:
        asked.append(span)
        return ready.get(tuple(block.id for block in span.blocks))

    policy = Policy("c", steps=(Step("compact", Compact(trigger=0.5, summary_tokens=300)),))
    session = coding(80, 100)
    state = start(policy, 6_000, Means(rough, summarize))
    revision = None
    for call in session.calls:
        _, revision = advance(state, Arrival(call.step, _fresh(session, state, call.step)))
        if len(asked) == 5:
            assert len({tuple(b.id for b in span.blocks) for span in asked}) == 1
            assert state.wanted == [asked[-1]]
            ready[tuple(block.id for block in asked[0].blocks)] = extractive(asked[0])
        if revision is not None:
            break
    assert len(asked) == 6
    assert revision is not None
    assert revision.edits[0].targets == tuple(block.id for block in asked[0].blocks)


def test_a_request_that_waits_asks_for_the_same_again() -> None:
    texts: list[str] = []
    state = _agent(30, Policy("none"))
    state.means = Means(rough, lambda span: texts[0] if texts else None)
    assert compact_now(state, "keep names") is None
    (span,) = state.wanted
    assert isinstance(span, Span)
    assert span.instructions == "keep names"
    texts.append(extractive(span))
    advance(state, Arrival(state.step + 1))
    revision = compact_now(state, "keep names", end_of(span))
    assert revision is not None
    assert revision.edits[0].targets == tuple(block.id for block in span.blocks)


def test_a_request_is_refused_where_nothing_is_won() -> None:
    with pytest.raises(CannotCompact, match="no more than a summary"):
        compact_now(_agent(3, PRESETS["offload-first"]))


def _steps(state: State, session: Session) -> Iterator[Revision]:
    for call in session.calls:
        _, revision = advance(state, Arrival(call.step, _fresh(session, state, call.step)))
        if revision is not None:
            yield revision


def test_another_process_follows_without_asking_a_strategy() -> None:
    session = coding(200, 200)
    policy = PRESETS["offload-first"]
    leader = start(policy, 20_000, MEANS)
    revisions = list(_steps(leader, session))
    follower = start(Policy("none"), 20_000, MEANS)
    advance(follower, Arrival(1, session.blocks))
    for revision in revisions:
        follow(follower, revision)
    assert follower.standing == leader.standing


@pytest.mark.parametrize(("count", "said"), [(0, "0 blocks"), (1, "1 block"), (2, "2 blocks")])
def test_an_amount_has_its_noun(count: int, said: str) -> None:
    assert amount(count, "block") == said
