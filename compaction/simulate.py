"""What a policy would have made of a recorded session: the fold over all of its steps."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.edits import Entry, Refusal, Revision
from compaction.policy import Policy


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Token figures of the context of one step; none of them counts the session's hidden prompt.

    `at` is when the call began (ms since the epoch, None where unknown). `unchanged_prefix` are
    the leading tokens that this context shares with the one of the step before: all of that one
    where nothing was edited, 0 at the first step. `frontier` are the tokens up to and including
    the last replacement, where a policy sets its second cache breakpoint; 0 without one.
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
