"""What a policy would have made of a recorded session: the fold over all of its steps."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.edits import Entry, Refusal, Revision
from compaction.extract import extractive
from compaction.fold import Arrival, State, advance, start
from compaction.plan import Count, Means, Outline, Summarize, no_outline
from compaction.policy import Policy
from compaction.session import Session


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Token figures of the context of one step; none of them counts the session's hidden prompt.

    `at` is when the call began (ms since the epoch, None where unknown). `unchanged_prefix` are
    the leading tokens that this context shares with the one of the step before: all of that one
    where nothing was edited, 0 at the first step. `frontier` are the tokens up to and including
    the last replacement of what a model had seen, where a policy sets its second cache
    breakpoint; 0 without one.
    `by_kind` follows the order of `context.KINDS`. `revision` is the number of the revision that
    this step was the first to see.
    """

    step: int
    at: int | None
    total: int
    unchanged_prefix: int
    frontier: int
    by_kind: tuple[int, ...]
    revision: int | None = None


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
    state = start(policy, session.window, Means(count, summarize, outline), session.hidden)
    blocks = session.blocks
    steps: list[StepTokens] = []
    revisions: list[Revision] = []
    place = 0
    prompt: int | None = None
    for call in session.calls:
        first = place
        while place < len(blocks) and blocks[place].born <= call.step:
            place += 1
        arrival = Arrival(call.step, blocks[first:place], call.at, prompt)
        state, revision = advance(state, arrival)
        if revision is not None:
            revisions.append(revision)
        steps.append(_figures(state, call.at, revision))
        # Reported prompts are of the recorded context: they say nothing once ours differs.
        usage = call.usage
        prompt = usage.prompt if usage is not None and not revisions else None
    return Run(
        policy,
        tuple(steps),
        tuple(state.entries),
        tuple(revisions),
        tuple(state.refusals),
        session.hidden,
    )


def _figures(state: State, at: int | None, revision: Revision | None) -> StepTokens:
    return StepTokens(
        step=state.step,
        at=at,
        total=state.total,
        unchanged_prefix=state.unchanged_prefix,
        frontier=state.frontier,
        by_kind=tuple(state.by_kind.values()),
        revision=revision.number if revision is not None else None,
    )
