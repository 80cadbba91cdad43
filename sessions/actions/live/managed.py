"""The managed run of a session: plans for the next call, past steps, and retries."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compaction.budget.budget import ContextFill, ContextLimits, budget_of, standing
from compaction.cache.economy import TTLSetting
from compaction.context.blocks import Block, Ending, context_of
from compaction.context.edits import context_at
from compaction.context.wire import WireBlock
from compaction.fold.fold import State
from compaction.fold.layers import ending_then
from compaction.fold.state import EVEN
from compaction.policies.presets import PRESETS
from compaction.prices.system_messages import takes_system_messages
from compaction.tokens import count, scaled
from sessions.actions.live import tend
from sessions.actions.live.advance import advance_to
from sessions.actions.live.arrivals import Facts, stood_in
from sessions.actions.live.folds import Fold, serving, with_fold
from sessions.actions.live.retries import errors_of
from sessions.actions.memory.openings import with_opening
from sessions.actions.memory.received import ending_with, known_then, known_to
from sessions.models import ManagedContext, Run, Session, ToolGraph
from sessions.models.record.lived import lived_context
from sessions.models.record.model_calls import begun_before
from sessions.models.web.statements import insert_object

LONGEST_WAIT = 30.0
"""Maximum seconds a request may wait for an artefact; less than the time-outs of clients and
proxies."""

FULL = 1.0
FULL_SECONDS = 15.0
"""How long a context that exceeds the window waits for an artefact, whatever the request says: the
provider would refuse it."""

LOOK_SECONDS = 0.1

READING_SECONDS = 5.0
"""CPU seconds that one request may spend on messages that came without one: no thread can be
stopped. What it has processed is stored, so that the next request goes on from there."""


class NoSuchStep(ValueError):
    """The session has no such step."""


class StillReading(Exception):
    """So much is new that one request cannot process it; the same request again goes on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A context to build: `blocks` in order at `step`, after `revision`, up to message `seq`.

    `run` is the managed run, or the recorded one of a session without a policy. `missing` names
    artefacts that were not ready. `ending` follows the last cache breakpoint; its recited tokens
    are included in `standing`. `knowledge` is the blob of shared knowledge in it. `tools` is the
    graph that selected its tools, `retry_of` the failed step that `step` retries, `ttl` the
    policy's cache TTL; `tooled` and `budgeted` are False without a tool graph or budgets. `wires`
    is the wire form of new originals by id.
    """

    session: Session
    run: Run
    step: int
    revision: int
    seq: int
    blocks: tuple[Block, ...]
    standing: ContextFill
    missing: tuple[str, ...] = ()
    ending: Ending = Ending()
    knowledge: str = ""
    tools: ToolGraph | None = None
    retry_of: int | None = None
    ttl: TTLSetting = "recorded"
    tooled: bool = True
    budgeted: bool = True
    wires: Mapping[str, WireBlock] = field(default_factory=dict)

    @property
    def one_turn(self) -> bool:
        """Whether the model takes system messages for one turn."""
        return takes_system_messages(self.session.model)


def catch_up(session: Session, *, wait: float = 0) -> Plan:
    """The plan for the next model call, including everything committed so far.

    Missing artefacts are queued (job `tend`) and awaited for up to `wait` seconds, and at least
    FULL_SECONDS if the context exceeds the window; otherwise the plan goes without them and lists
    them in `missing`. Raises StillReading.
    """
    session.reread()
    return next_plan(session, wait=wait)


def next_plan(session: Session, *, wait: float = 0) -> Plan:
    """The plan of `catch_up`, for a session that was just read."""
    begun = time.monotonic()
    plan = _next_plan(session)
    if plan.standing.share > FULL:
        wait = max(wait, FULL_SECONDS)
    end = begun + min(wait, LONGEST_WAIT)
    if plan.missing:
        tend.ask(session)
    while plan.missing and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        session.reread()
        plan = _next_plan(session)
    return plan


def _next_plan(session: Session) -> Plan:
    facts = Facts.of(session)
    run = serving(session) if facts.managed is None else Run(pk=facts.managed)
    known, knowledge, more = known_to(session) if facts.shared else ("", "", 0)
    if run is None:
        plan = _recorded_plan(session, facts.steps + 1, more)
        plan = replace(plan, tooled=facts.tooled, budgeted=facts.budgeted)
        return replace(plan, ending=ending_with(plan.ending, known, more), knowledge=knowledge)

    def work(fold: Fold) -> Plan | None:
        if not advance_to(fold, session, facts, facts.steps + 1, seconds=READING_SECONDS):
            return None
        state, run = fold.state, _run(fold)
        blocks = tuple(state.standing.values())
        billed, counted = state.billed + more, state.counted + more
        return Plan(
            session,
            run,
            state.step,
            state.revisions,
            state.originals[state.arrivals[-1]].message if state.arrivals else 0,
            with_opening(session, blocks) if facts.opened else blocks,
            _standing(state, billed, counted),
            tuple(run.fold.get("wanted", ())),
            ending_with(state.ending, known, more) if known else state.ending,
            knowledge,
            ttl=fold.ttl,
            tooled=facts.tooled,
            budgeted=facts.budgeted,
            wires=fold.wires,
        )

    return _read(with_fold(session, run, work))


def _read(plan: Plan | None) -> Plan:
    # Not raised within the fold's work, which would forget the fold.
    if plan is None:
        raise StillReading
    return plan


def _run(fold: Fold) -> Run:
    assert fold.run is not None
    return fold.run


def _standing(state: State, used: int, counted: int) -> ContextFill:
    beside = used - counted + state.hidden
    return standing(budget_of(state.policy, state.window, beside), used, counted)


def plan_at(session: Session, step: int) -> Plan:
    """The plan as of a step, including everything before its call.

    Raises NoSuchStep beyond the next model call, StillReading.
    """
    session.refresh_from_db()
    facts = Facts.of(session)
    if not 1 <= step <= facts.steps + 1:
        raise NoSuchStep(f"There is no step {step}. The next one is {facts.steps + 1}.")
    run = serving(session)
    if run is None:
        return _recorded_plan(session, step)

    def work(fold: Fold) -> Plan | None:
        if not advance_to(fold, session, facts, step, seconds=READING_SECONDS):
            return None
        state = fold.state
        blocks = tuple(context_at(state.entries, step).values())
        last = max((e.block.message for e in state.entries if e.from_step <= step), default=0)
        made = sum(revision.step <= step for revision in state.made)
        at = begun_before(session, step)
        end = ending_then(state, blocks, made, lambda entry: entry.from_step <= step, at)
        counted = sum(block.tokens for block in blocks) + state.hidden + end.tokens
        standing = _standing(state, scaled(counted, state.scale or EVEN), counted)
        blocks = with_opening(session, blocks)
        ttl = fold.ttl
        return Plan(session, _run(fold), step, made, last, blocks, standing, ending=end, ttl=ttl)

    return _read(with_fold(session, run, work))


def plan_again(session: Session, step: int) -> Plan:
    """The plan for retrying a failed step: its context, followed by its error; later messages are
    excluded.

    Raises NoSuchStep, NothingFailed.
    """
    before = plan_at(session, step)
    text = errors_of(session, step)
    more = session.scaled(count(text))
    now = before.standing
    budget = ContextLimits(
        now.window, now.window - now.room, trigger=now.trigger, target=now.target
    )
    return replace(
        before,
        step=Facts.of(session).steps + 1,
        standing=standing(budget, now.used + more, now.counted + more),
        ending=ending_with(before.ending, text, more),
        retry_of=step,
    )


def plan_of(managed: ManagedContext) -> Plan:
    """Reproduce the plan of a managed context."""
    session = managed.run.session
    known = known_then(session, managed.knowledge)
    if managed.retry_of is not None:
        known = errors_of(session, managed.retry_of)
    more = session.scaled(count(known)) if known else 0
    if managed.run.origin == Run.Origin.RECORDED:
        plan = _lived_plan(session, managed.run, managed.step, managed.revision, managed.seq, more)
        end = ending_with(plan.ending, known, more)
        return replace(plan, ending=end, retry_of=managed.retry_of)

    def work(fold: Fold) -> Plan:
        state = fold.state
        found = context_of(entry.block for entry in state.entries if stood_in(managed, entry))
        blocks = tuple(found.values())
        counted = sum(block.tokens for block in blocks) + state.hidden + managed.recited
        end = ending_then(
            state,
            blocks,
            managed.revision,
            lambda entry: entry.block.message <= managed.seq,
            begun_before(session, managed.retry_of or managed.step),
            one_turn=managed.one_turn,
        )
        return Plan(
            session,
            _run(fold),
            managed.step,
            managed.revision,
            managed.seq,
            with_opening(session, blocks),
            _standing(state, managed.tokens, counted),
            ending=ending_with(end, known, more),
            retry_of=managed.retry_of,
            ttl=fold.ttl,
        )

    return with_fold(session, managed.run, work)


def _recorded_plan(session: Session, step: int, more: int = 0) -> Plan:
    """The plan of a session without a policy: its recorded context."""
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
    stands = standing(budget_of(PRESETS["passthrough"], session.window_taken), used)
    return Plan(session, run, step, revision, seq, with_opening(session, blocks), stands)


def record_context(plan: Plan, format: str) -> ManagedContext:
    """Record a managed context; the agent's usage report echoes its id."""
    made = ManagedContext(
        id=f"ctx_{secrets.token_urlsafe(16)}",
        run=plan.run,
        revision=plan.revision,
        seq=plan.seq,
        step=plan.step,
        format=format,
        tokens=plan.standing.used,
        recited=plan.ending.tokens,
        one_turn=plan.one_turn and format == "anthropic",
        knowledge=plan.knowledge,
        tools=plan.tools,
        retry_of=plan.retry_of,
    )
    insert_object(made)
    return made
