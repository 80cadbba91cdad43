"""The recited text at steps of a run, recomputed because it is not stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from compaction import tokens
from compaction.context.blocks import Block, Ending
from compaction.fold.fold import follow, start
from compaction.fold.layers import ending_of
from compaction.fold.state import take_in
from compaction.policies.policy import from_dict
from compaction.prices.system_messages import takes_system_messages
from compaction.proposals.plan import Means
from compaction.summaries.extract import extractive
from sessions.actions.live.managed import plan_at
from sessions.models import Run, Session
from sessions.models.live.revised import revisions_of
from sessions.models.record.model_calls import begun_before
from sessions.models.record.values import blocks_of, summary_positions


def recited_at(session: Session, run: Run, step: int) -> Ending:
    """The end of a run's context at a step; empty if its policy recites nothing.

    Linear in the session up to that step. Raises NoSuchStep.
    """
    if run.policy_version is None:
        return Ending()
    managed = run.origin == Run.Origin.MANAGED
    own = session.policy_document if managed else None
    policy = from_dict(own or run.policy_version.document)
    if policy.recite is None:
        return Ending()
    if managed:
        return plan_at(session, step).ending
    state = start(policy, 0, _means(session))
    for block in _originals(session):
        if block.born <= step:
            take_in(state, block, block.born)
    for revision in revisions_of(session, run, state.originals, {}, until=step):
        follow(state, revision)
    state.last = begun_before(session, step)
    return ending_of(state)


def recited_by_step(
    session: Session, run: Run, steps: Sequence[int]
) -> Iterator[tuple[int, Ending]]:
    """The ends of a run's context at rising steps, linear in the session. Raises NoSuchStep."""
    blocks = list(_originals(session))
    version = run.policy_version
    if version is None or any(later.born < one.born for one, later in pairwise(blocks)):
        # A state takes in blocks in their order only.
        yield from ((step, recited_at(session, run, step)) for step in steps)
        return
    own = session.policy_document if run.origin == Run.Origin.MANAGED else None
    state = start(from_dict(own or version.document), 0, _means(session))
    originals = {block.position: block for block in blocks}
    revisions = deque(revisions_of(session, run, originals, {}))
    arriving = deque(blocks)
    for step in steps:
        while arriving or revisions:
            if revisions and not (arriving and arriving[0].born <= revisions[0].step):
                if revisions[0].step > step:
                    break
                follow(state, revisions.popleft())
            elif arriving[0].born <= step:
                block = arriving.popleft()
                take_in(state, block, block.born)
            else:
                break
        state.last = begun_before(session, step)
        yield step, ending_of(state)


def _means(session: Session) -> Means:
    one_turn = takes_system_messages(session.model)
    return Means(lambda text: session.scaled(tokens.count(text)), extractive, one_turn=one_turn)


def _originals(session: Session) -> Iterator[Block]:
    never = set(summary_positions(session))
    return (one for one in blocks_of(session, with_text=True) if one.position not in never)
