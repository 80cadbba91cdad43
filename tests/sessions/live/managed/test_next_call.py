"""The next call's prompt is one number everywhere, corrected by reported usage."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from compaction.budget.budget import ContextFill
from sessions.actions.jobs.attempts import attempt
from sessions.actions.jobs.jobs import claim
from sessions.actions.live import folds
from sessions.actions.live.answer import standing_of
from sessions.actions.live.managed import catch_up, record_context
from sessions.actions.live.requests.on_request import request_compaction
from sessions.actions.record.measure import measure
from sessions.api.replay.heads import _session as session_head
from sessions.models import ManagedContext, Run, Session
from sessions.views.live.live import gauge
from tests.sessions.live.appends import live, reads, result, send, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

HIDDEN = 900
"""Tokens of the prompt that the agent does not report."""


def now(session: Session) -> ContextFill:
    """The standing of the next call, as reported everywhere except in the context."""
    session = Session.objects.get(pk=session.pk)
    stands = standing_of(session)
    found = session_head(session, Run(session=session))
    assert (found["used"], found["budget"]) == (stands.used, asdict(stands))
    assert gauge(session).standing == stands
    assert session.used_tokens == stands.used
    return stands


class Agent:
    """Gets its context before each call; its provider counts that many times as many tokens as we
    do."""

    def __init__(self, scale: float, **fields: Any) -> None:
        self.session = live(model="gpt-5", **fields)
        self.scale, self.steps = scale, 0
        send(self.session, user("Find the port."))

    def step(self, context: ManagedContext | None = None, *, echo: bool = True) -> ContextFill:
        plan = catch_up(self.session)
        context = context or record_context(plan, "blocks")
        counted = HIDDEN + sum(block.tokens for block in plan.blocks)
        scale = self.scale if self.steps else 1
        usage = {"input_tokens": int(counted * scale), "output_tokens": 9}
        self.steps += 1
        more = {"context_id": context.pk} if echo else {}
        send(self.session, reads(f"t{self.steps}", f"f{self.steps}.py"), usage=usage, **more)
        body = "".join(f"def handler_{self.steps}_{line}(): ...\n" for line in range(90))
        return self.said(send(self.session, result(f"t{self.steps}", body)))

    def said(self, answer: dict[str, Any]) -> ContextFill:
        """The answer to an append agrees with the others."""
        stands = now(self.session)
        assert answer["budget"] == asdict(stands)
        return stands


@pytest.mark.parametrize("lost", [False, True])
def test_everyone_tells_the_same_number(lost: bool):
    agent = Agent(1.3, window=30_000, policy="offload-first")
    revised = set()
    for _ in range(30):
        agent.step()
        if lost:
            folds.forget_all()
        plan = catch_up(agent.session)
        assert plan.standing == now(agent.session)
        assert plan.standing.counted == HIDDEN + sum(block.tokens for block in plan.blocks)
        if agent.steps > 1:
            assert plan.standing.used == pytest.approx(1.3 * plan.standing.counted, rel=0.001)
        revised.add(plan.revision)
        if agent.steps % 7 == 0:
            agent.said(send(agent.session, user("And quickly.")))
            measure(agent.session)
            assert catch_up(agent.session).standing == now(agent.session)
    assert len(revised) > 3


def test_after_a_compaction_the_correction_shrinks_with_the_context():
    agent = Agent(1.4)
    for _ in range(20):
        agent.step()
    before = catch_up(agent.session).standing
    job = claim(request_compaction(agent.session, "").pk)
    assert job is not None and job.token is not None
    attempt(job.pk, job.token)
    after = now(agent.session)
    assert after.counted < before.counted / 2
    assert after.used == pytest.approx(1.4 * after.counted, rel=0.001)
    assert catch_up(agent.session).standing == after


def test_only_contexts_that_we_handed_out_teach_how_a_provider_counts():
    agent = Agent(2.0)
    agent.step()
    agent.step(echo=False)
    stands = catch_up(agent.session).standing
    assert stands.used == stands.counted
    agent.step()
    stands = catch_up(agent.session).standing
    assert stands.used == pytest.approx(2 * stands.counted, rel=0.001)
    agent.scale = 0.8
    agent.step()
    stands = catch_up(agent.session).standing
    assert stands.used == pytest.approx(0.8 * stands.counted, rel=0.001)


def test_a_message_after_the_context_was_taken_does_not_teach():
    agent = Agent(1.5)
    agent.step()
    context = record_context(catch_up(agent.session), "blocks")
    counted = catch_up(agent.session).standing.counted
    send(agent.session, user("Wait: " + "look at the settings too. " * 500))
    assert catch_up(agent.session).standing.counted > counted + 2_000
    usage = {"input_tokens": int(counted * 1.5), "output_tokens": 9}
    send(agent.session, reads("t", "f.py"), usage=usage, context_id=context.pk)
    send(agent.session, result("t", "none"))
    stands = catch_up(agent.session).standing
    assert stands.used == pytest.approx(1.5 * stands.counted, rel=0.001)
