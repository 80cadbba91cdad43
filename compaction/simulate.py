"""What a policy would have made of a recorded session: the fold over all of its steps."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.cache.economy import asked_for, session_rates
from compaction.edits import Entry, Refusal, Revision
from compaction.fold import Arrival, State, advance, start
from compaction.plan import Count, Means, Outline, Summarize, no_outline
from compaction.policies.policy import Policy
from compaction.session import Session
from compaction.summaries.extract import extractive


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Token figures of the context of one step; none of them counts the session's hidden prompt.

    `at` is when the call began (ms since the epoch, None where unknown). `unchanged_prefix` are
    the leading tokens that this context shares with the one of the step before: all blocks of that
    one where nothing was edited, 0 at the first step. `frontier` are the tokens up to and including
    the last replacement of what a model had seen, where a policy sets its second cache
    breakpoint; 0 without one.
    `by_kind` follows the order of `context.KINDS`. `revision` is the number of the revision that
    this step was the first to see. Of `total`, `recited` tokens stand in no block, and `once` are
    those of results that stand for this step only: the first of them is at position `once_from`
    (None without any), and `lasting` are the tokens before it.
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
    """A policy's life of a session: `entries` give the context at any step (`edits.context_at`).

    `steps` holds one record per model call, in order. `hidden` repeats the session's.
    """

    policy: Policy
    steps: tuple[StepTokens, ...]
    entries: tuple[Entry, ...]
    revisions: tuple[Revision, ...]
    refusals: tuple[Refusal, ...]
    hidden: int = 0

    @property
    def sent(self) -> int:
        """Tokens sent over the whole session: each step's context, without the hidden prompt."""
        return sum(step.total for step in self.steps)


def simulate(
    session: Session,
    policy: Policy,
    count: Count,
    summarize: Summarize = extractive,
    outline: Outline = no_outline,
) -> Run:
    """Fold a policy over a recorded session, call by call.

    `count` gives tokens in the session's own counting and is asked for replacements only;
    `outline` parses what agents read, so pass one only where a parser may come to grief. Linear
    in the length of the session. Blocks born after the last recorded call are not seen by any.
    """
    began = session.calls[0].at if session.calls else None
    recorded = asked_for(call.usage for call in session.calls if call.usage is not None)
    rates = session_rates(session.model, began, recorded, policy.lifetime)
    means = Means(count, summarize, outline, rates)
    state = start(policy, session.window, means, session.hidden)
    blocks = session.blocks
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
        # Reported prompts are of the recorded context: they say nothing once ours differs by more
        # than what is recited.
        usage = call.usage
        told = usage is not None and not revisions
        prompt = usage.prompt + state.ending.tokens if usage is not None and told else None
        if prompt is None:
            state.hidden, state.scale = session.hidden, None
    return Run(
        policy,
        tuple(steps),
        tuple(state.entries),
        tuple(revisions),
        tuple(state.refusals),
        session.hidden,
    )


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
