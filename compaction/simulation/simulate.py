"""Simulate a policy on a recorded session: the fold over all of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.cache.economy import asked_for, session_rates
from compaction.context.edits import Entry, RefusedEdits, Revision
from compaction.context.session import Session
from compaction.facts.facts import facts_of
from compaction.fold.fold import Arrival, State, advance, start
from compaction.policies.policy import Policy
from compaction.prices.binding import binds_thinking
from compaction.prices.system_messages import takes_system_messages
from compaction.proposals.plan import Count, FactsOf, Means, Outline, Summarize, no_outline
from compaction.summaries.extract import extractive
from compaction.tools.listed import sized
from compaction.tools.read_tool import definition, is_listed


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Token figures of the context of one step, without the session's hidden prompt.

    `at` is when the call began (ms since the epoch, None if unknown). `unchanged_prefix` is the
    number of leading tokens shared with the context of the step before: all of it if nothing was
    edited, 0 at the first step. `frontier` is the number of tokens up to and including the last
    replacement of a block that a model had seen, where a policy sets its second cache breakpoint; 0
    without one. `by_kind` follows the order of `context.KINDS`. `revision` is the number of the
    revision that this step saw first. Of `total`, `recited` tokens are in no block, and `once` are
    those of results sent at this step only: the first of them is at position `once_from` (None
    without any), with `lasting` tokens before it.
    """

    step: int
    at: int | None
    total: int
    unchanged_prefix: int
    frontier: int
    by_kind: tuple[int, ...]
    revision: int | None = None
    recited: int = 0
    once: int = 0
    once_from: int | None = None
    lasting: int = 0

    @property
    def passing(self) -> int:
        """Tokens that no other step has: those of layers 3 and 4."""
        return self.recited + self.once

    @property
    def cacheable(self) -> int:
        """Tokens before the last breakpoint."""
        return self.lasting if self.once_from is not None else self.total - self.recited


@dataclass(frozen=True, slots=True)
class Run:
    """A simulated session under a policy: `entries` give the context of each step (`context_at`).

    `steps` holds one record per model call, in order. `hidden` is the session's, `added` the tokens
    of the `read_back` definition, which contexts list from step `added_from` on (None: never).
    """

    policy: Policy
    steps: tuple[StepTokens, ...]
    entries: tuple[Entry, ...]
    revisions: tuple[Revision, ...]
    refusals: tuple[RefusedEdits, ...]
    hidden: int = 0
    added: int = 0
    added_from: int | None = None

    def prelude_at(self, step: int) -> int:
        """Tokens before the blocks of a step."""
        listed = self.added_from is not None and step >= self.added_from
        return self.hidden + (self.added if listed else 0)

    @property
    def preludes(self) -> int:
        """Tokens before the blocks of all steps."""
        return sum(self.prelude_at(step.step) for step in self.steps)

    @property
    def sent(self) -> int:
        """Tokens sent over the whole session: each step's context, without preludes."""
        return sum(step.total for step in self.steps)


def simulate(
    session: Session,
    policy: Policy,
    count: Count,
    summarize: Summarize = extractive,
    outline: Outline = no_outline,
    facts_of: FactsOf = facts_of,
) -> Run:
    """Fold a policy over a recorded session, call by call.

    `count` counts replacements in the session's own counting; `outline` parses file contents, so
    pass one only if the process may crash or hang safely; `facts_of` finds the facts of a block, so
    pass one that remembers them for many runs. Linear in the length of the session. Blocks born
    after the last recorded call are not seen by any.
    """
    began = session.calls[0].at if session.calls else None
    recorded = asked_for(call.usage for call in session.calls if call.usage is not None)
    rates = session_rates(session.model, began, recorded, policy.ttl)
    binds, one_turn = binds_thinking(session.model), takes_system_messages(session.model)
    means = Means(
        count, summarize, outline, rates, binds=binds, one_turn=one_turn, facts_of=facts_of
    )
    added, blocks = _added(policy, count), session.blocks
    opening = [block for block in blocks if session.calls and block.born <= session.calls[0].step]
    listed = added > 0 and is_listed(opening, 0, session.hidden, binds=binds)
    # Unknown stays unknown: then the first reported prompt has both.
    hidden = session.hidden + (added if listed else 0) if session.hidden else 0
    state = start(policy, session.window, means, hidden)
    steps: list[StepTokens] = []
    revisions: list[Revision] = []
    place = 0
    prompt: int | None = None
    last: int | None = None
    for call in session.calls:
        first = place
        while place < len(blocks) and blocks[place].born <= call.step:
            place += 1
        arrival = Arrival(call.step, blocks[first:place], call.at, prompt, last=last)
        state, revision = advance(state, arrival)
        if revision is not None:
            revisions.append(revision)
        last = call.at
        steps.append(_figures(state, call.at, revision))
        # Reported prompts apply to the recorded context: ignore them once ours differs by more than
        # the recitation and the definition.
        usage = call.usage
        comparable = usage is not None and not revisions
        more = state.ending.tokens + (added if listed else 0)
        prompt = usage.prompt + more if usage is not None and comparable else None
        if prompt is None:
            state.hidden, state.scale = hidden, None
    return Run(
        policy,
        tuple(steps),
        tuple(state.entries),
        tuple(revisions),
        tuple(state.refusals),
        session.hidden,
        added,
        _added_from(session, revisions, listed) if added else None,
    )


def _added_from(session: Session, revisions: Sequence[Revision], listed: bool) -> int | None:
    if listed:
        return session.calls[0].step
    return revisions[0].step if revisions else None


def _added(policy: Policy, count: Count) -> int:
    """Tokens of the `read_back` definition, which contexts of an editing policy list."""
    if not policy.steps:
        return 0
    return sized({"tools": [definition("anthropic")]}, count)[0].tokens


def _figures(state: State, at: int | None, revision: Revision | None) -> StepTokens:
    once, recited = state.ending.once, state.ending.tokens
    return StepTokens(
        step=state.step,
        at=at,
        total=state.total + recited,
        unchanged_prefix=state.unchanged_prefix,
        frontier=state.frontier,
        by_kind=tuple(state.by_kind.values()),
        revision=revision.number if revision is not None else None,
        recited=recited,
        once=sum(state.standing[place].tokens for place in once),
        once_from=once[0] if once else None,
        lasting=state.prefix_tokens(once[0]) if once else 0,
    )
