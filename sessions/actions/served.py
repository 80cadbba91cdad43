"""The served run of a session: what its policy made of it, kept up with what its agent sends."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace

from compaction.budget import Budget, Standing, budget_of, standing
from compaction.cache.economy import Lifetime
from compaction.context import Block, Ending, context_of
from compaction.edits import context_at
from compaction.fold import State
from compaction.policies.presets import PRESETS
from compaction.recitation.layers import ending_then
from compaction.state import EVEN
from compaction.tokens import count, scaled
from sessions.actions import tend
from sessions.actions.advance import Facts, advance_to, serving, stood_in
from sessions.actions.folds import Fold, with_fold
from sessions.actions.openings import ending_with, known_then, known_to, with_opening
from sessions.actions.retries import NothingFailed, errors_of
from sessions.models import Run, ServedContext, Session, ToolGraph
from sessions.models.lived import lived_context
from sessions.models.values import begun_before

__all__ = [
    "NoSuchStep",
    "NothingFailed",
    "Plan",
    "catch_up",
    "hand_out",
    "plan_again",
    "plan_at",
    "plan_of",
    "serving",
]

LONGEST_WAIT = 30.0
"""Seconds that a request may wait for an artefact at most; below the time after which clients and
proxies give up."""

LOOK_SECONDS = 0.1


class NoSuchStep(ValueError):
    """A step that the session has not come to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model is to see: `blocks` in order at `step`, after `revision`, up to message `seq`.

    `run` is the served run, or the recorded one of a session without a policy. `missing` says
    which artefacts would have been used but are not ready. `ending` is what lies after the last
    cache breakpoint; what it recites is part of what `standing` counts. `knowledge` is the blob of
    what others shared, which is part of that. `tools` is the graph by which its tools were chosen,
    `retry_of` the failed step whose prefix and error this is, for `step` to do it again, `lifetime`
    what the policy asks of its cache entries.
    """

    session: Session
    run: Run
    step: int
    revision: int
    seq: int
    blocks: tuple[Block, ...]
    standing: Standing
    missing: tuple[str, ...] = ()
    ending: Ending = Ending()
    knowledge: str = ""
    tools: ToolGraph | None = None
    retry_of: int | None = None
    lifetime: Lifetime = "recorded"


def catch_up(session: Session, *, wait: float = 0) -> Plan:
    """The plan for the next model call, with everything taken in that is committed now.

    An artefact that is not ready is asked for (job `tend`); for up to `wait` seconds it is waited
    for, else the plan does without and says so in `missing`.
    """
    end = time.monotonic() + min(wait, LONGEST_WAIT)
    plan = _next_plan(session)
    if plan.missing:
        tend.ask(session)
    while plan.missing and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        plan = _next_plan(session)
    return plan


def _next_plan(session: Session) -> Plan:
    session.refresh_from_db()
    run = serving(session)
    facts = Facts.of(session)
    known, knowledge, more = known_to(session)
    if run is None:
        plan = _recorded_plan(session, facts.steps + 1, more)
        return replace(plan, ending=ending_with(plan.ending, known, more), knowledge=knowledge)

    def work(fold: Fold) -> Plan:
        advance_to(fold, session, facts, facts.steps + 1)
        state = fold.state
        return Plan(
            session,
            _run(fold),
            state.step,
            state.revisions,
            state.originals[state.arrivals[-1]].message if state.arrivals else 0,
            with_opening(session, tuple(state.standing.values())),
            _standing(state, state.billed + more, state.counted + more),
            tuple(_run(fold).fold.get("wanted", ())),
            ending_with(state.ending, known, more),
            knowledge,
            lifetime=state.policy.lifetime,
        )

    return with_fold(session, run, work)


def _run(fold: Fold) -> Run:
    assert fold.run is not None
    return fold.run


def _standing(state: State, used: int, counted: int) -> Standing:
    beside = used - counted + state.hidden
    return standing(budget_of(state.policy, state.window, beside), used, counted)


def plan_at(session: Session, step: int) -> Plan:
    """The plan as it was at a step, with all that came before its call.

    Raises NoSuchStep beyond the next model call.
    """
    session.refresh_from_db()
    facts = Facts.of(session)
    if not 1 <= step <= facts.steps + 1:
        raise NoSuchStep(f"There is no step {step}; the next one is {facts.steps + 1}.")
    run = serving(session)
    if run is None:
        return _recorded_plan(session, step)

    def work(fold: Fold) -> Plan:
        advance_to(fold, session, facts, step)
        state = fold.state
        blocks = tuple(context_at(state.entries, step).values())
        last = max((e.block.message for e in state.entries if e.from_step <= step), default=0)
        made = sum(revision.step <= step for revision in state.made)
        at = begun_before(session, step)
        end = ending_then(state, blocks, made, lambda entry: entry.from_step <= step, at)
        counted = sum(block.tokens for block in blocks) + state.hidden + end.tokens
        standing = _standing(state, scaled(counted, state.scale or EVEN), counted)
        blocks = with_opening(session, blocks)
        keep = state.policy.lifetime
        return Plan(
            session, _run(fold), step, made, last, blocks, standing, ending=end, lifetime=keep
        )

    return with_fold(session, run, work)


def plan_again(session: Session, step: int) -> Plan:
    """The plan for the next model call to do a failed step again: what that step saw, and at the
    end how it failed. What came since stands in none of it.

    Raises NoSuchStep, NothingFailed.
    """
    before = plan_at(session, step)
    text = errors_of(session, step)
    more = session.scaled(count(text))
    now = before.standing
    budget = Budget(now.window, now.window - now.room, trigger=now.trigger, target=now.target)
    return replace(
        before,
        step=Facts.of(session).steps + 1,
        standing=standing(budget, now.used + more, now.counted + more),
        ending=ending_with(before.ending, text, more),
        retry_of=step,
    )


def plan_of(served: ServedContext) -> Plan:
    """The very plan that was handed out, whatever came later."""
    session = served.run.session
    known = known_then(session, served.knowledge)
    if served.retry_of is not None:
        known = errors_of(session, served.retry_of)
    more = session.scaled(count(known)) if known else 0
    if served.run.origin == Run.Origin.RECORDED:
        plan = _lived_plan(session, served.run, served.step, served.revision, served.seq, more)
        end = ending_with(plan.ending, known, more)
        return replace(plan, ending=end, retry_of=served.retry_of)

    def work(fold: Fold) -> Plan:
        state = fold.state
        found = context_of(entry.block for entry in state.entries if stood_in(served, entry))
        blocks = tuple(found.values())
        counted = sum(block.tokens for block in blocks) + state.hidden + served.recited
        end = ending_then(
            state,
            blocks,
            served.revision,
            lambda entry: entry.block.message <= served.seq,
            begun_before(session, served.retry_of or served.step),
        )
        return Plan(
            session,
            _run(fold),
            served.step,
            served.revision,
            served.seq,
            with_opening(session, blocks),
            _standing(state, served.tokens, counted),
            ending=ending_with(end, known, more),
            retry_of=served.retry_of,
            lifetime=state.policy.lifetime,
        )

    return with_fold(session, served.run, work)


def _recorded_plan(session: Session, step: int, more: int = 0) -> Plan:
    """What a session without a policy recorded is what its model is to see."""
    run, _ = Run.objects.get_or_create(session=session, origin=Run.Origin.RECORDED)
    newest = run.revisions.filter(step__lte=step).order_by("-number").first()
    last = session.messages.filter(born__lte=step).order_by("-seq").first()
    revision, seq = newest.number if newest else 0, last.seq if last else 0
    return _lived_plan(session, run, step, revision, seq, more)


def _lived_plan(
    session: Session, run: Run, step: int, revision: int, seq: int, more: int = 0
) -> Plan:
    blocks = tuple(lived_context(session, run, revision, seq))
    used = sum(block.tokens for block in blocks) + session.hidden_tokens + more
    stands = standing(budget_of(PRESETS["unmanaged"], session.window_taken), used)
    return Plan(session, run, step, revision, seq, with_opening(session, blocks), stands)


def hand_out(plan: Plan, format: str) -> ServedContext:
    """Record that a plan was handed out; its id is what the agent's usage report echoes."""
    return ServedContext.objects.create(
        id=f"ctx_{secrets.token_urlsafe(16)}",
        run=plan.run,
        revision=plan.revision,
        seq=plan.seq,
        step=plan.step,
        format=format,
        tokens=plan.standing.used,
        recited=plan.ending.tokens,
        knowledge=plan.knowledge,
        tools=plan.tools,
        retry_of=plan.retry_of,
    )
