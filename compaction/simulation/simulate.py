"""Simulate a policy on a recorded session: the fold over all of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

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
    without any), with `lasting` tokens before it. Before the blocks come, besides the hidden
    prompt, `added` tokens: our definition of `read_back`, if this context lists it.
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
    added: int = 0

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

    `steps` holds one record per model call, in order. `hidden` is the session's.
    """

    policy: Policy
    steps: tuple[StepTokens, ...]
    entries: tuple[Entry, ...]
    revisions: tuple[Revision, ...]
    refusals: tuple[RefusedEdits, ...]
    hidden: int = 0

    @property
    def preludes(self) -> int:
        """Tokens before the blocks of all steps."""
        return sum(self.hidden + step.added for step in self.steps)

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
    means = _means(session, policy, count, summarize, outline, facts_of)
    blocks, read_back = session.blocks, _read_back_tokens(policy, count)
    added = read_back if _lists_at_once(session, means) else 0
    # Unknown stays unknown: then the first reported prompt has both.
    hidden = session.hidden + added if session.hidden else 0
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
        listed = read_back if revisions else added
        steps.append(_figures(state, call.at, revision, listed))
        # Reported prompts apply to the recorded context: ignore them once ours differs by more than
        # the recitation and the definition.
        usage = call.usage
        comparable = usage is not None and not revisions
        more = state.ending.tokens + added
        prompt = usage.opening.prompt + more if usage is not None and comparable else None
        if prompt is None:
            state.hidden, state.scale = hidden, None
    entries, refusals = tuple(state.entries), tuple(state.refusals)
    return Run(policy, tuple(steps), entries, tuple(revisions), refusals, session.hidden)


def _means(
    session: Session,
    policy: Policy,
    count: Count,
    summarize: Summarize,
    outline: Outline,
    facts_of: FactsOf,
) -> Means:
    began = session.calls[0].at if session.calls else None
    recorded = asked_for(call.usage for call in session.calls if call.usage is not None)
    return Means(
        count,
        summarize,
        outline,
        session_rates(session.model, began, recorded, policy.ttl),
        binds=binds_thinking(session.model),
        one_turn=takes_system_messages(session.model),
        facts_of=facts_of,
    )


def _lists_at_once(session: Session, means: Means) -> bool:
    """Whether the first context lists `read_back`, and not only those with edits."""
    first = session.calls[0].step if session.calls else 0
    opening = takewhile(lambda block: block.born <= first, session.blocks)
    return is_listed(opening, edited=False, hidden=session.hidden, binds=means.binds)


def _read_back_tokens(policy: Policy, count: Count) -> int:
    """Tokens of the `read_back` definition, which contexts of an editing policy list."""
    if not policy.steps:
        return 0
    return sized({"tools": [definition("anthropic")]}, count)[0].tokens


def _figures(state: State, at: int | None, revision: Revision | None, added: int) -> StepTokens:
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
        added=added,
    )
