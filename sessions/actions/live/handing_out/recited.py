"""The recited text at a step of a run, recomputed because it is not stored."""

from __future__ import annotations

from compaction import tokens
from compaction.context.blocks import Ending
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
    one_turn = takes_system_messages(session.model)
    means = Means(lambda text: session.scaled(tokens.count(text)), extractive, one_turn=one_turn)
    state = start(policy, 0, means)
    never = set(summary_positions(session))
    for block in blocks_of(session, with_text=True):
        if block.born <= step and block.position not in never:
            take_in(state, block, block.born)
    for revision in revisions_of(session, run, state.originals, {}, until=step):
        follow(state, revision)
    state.last = begun_before(session, step)
    return ending_of(state)
