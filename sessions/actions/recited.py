"""What was recited at a step of a run: made again from what is stored, as it is stored nowhere."""

from __future__ import annotations

from compaction import tokens
from compaction.context import Ending
from compaction.fold import follow, start
from compaction.plan import Means
from compaction.policies.policy import from_dict
from compaction.recitation.layers import ending_of
from compaction.state import take_in
from compaction.summaries.extract import extractive
from sessions.actions.runs import left_out
from sessions.actions.served import plan_at
from sessions.models import Run, Session
from sessions.models.revised import revisions_of
from sessions.models.values import begun_before, blocks_of


def recited_at(session: Session, run: Run, step: int) -> Ending:
    """The end of the context of a run at a step; an empty one where its policy recites nothing.

    Linear in the session up to that step. Raises NoSuchStep.
    """
    if run.policy_version is None:
        return Ending()
    served = run.origin == Run.Origin.SERVED
    own = session.policy_document if served else None
    policy = from_dict(own or run.policy_version.document)
    if policy.recite is None:
        return Ending()
    if served:
        return plan_at(session, step).ending
    means = Means(lambda text: session.scaled(tokens.count(text)), extractive)
    state = start(policy, 0, means)
    never = set(left_out(session))
    for block in blocks_of(session, with_text=True):
        if block.born <= step and block.position not in never:
            take_in(state, block, block.born)
    for revision in revisions_of(session, run, state.originals, {}, until=step):
        follow(state, revision)
    state.last = begun_before(session, step)
    return ending_of(state)
