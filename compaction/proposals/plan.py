"""What a strategy sees and what it proposes: the signature of all strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from compaction.cache.economy import Objective, Rates
from compaction.context.blocks import Block
from compaction.context.edits import Edit, Trigger
from compaction.facts.facts import facts_of
from compaction.proposals.protect import Guard
from compaction.seen.repeats import Repeats
from compaction.seen.ripening import Ripening
from compaction.seen.sights import Sights
from compaction.tokens import scaled
from compaction.topic.mentions import Mentions
from compaction.topic.topic import Boundary, Judge, Rounds, Topic

SummaryForm = Literal["nine", "progress", "done", "window"]
"""`nine`: the nine sections in XML; `progress` and `done`: the forms of an open and of a finished
task; `window`: the short note of the sliding window."""

Mark = Mapping[str, int]
"""A strategy's progress and decisions: small numbers, stored with the state."""


@dataclass(frozen=True, slots=True)
class Span:
    """The blocks to summarize, in order, on top of the `previous` summary.

    `blocks` are as the model sees them, `originals` the blocks first at their positions. `kept` are
    user messages of the span that stay in the context verbatim. `budget` is the maximum size of the
    summary, in tokens. `instructions` are the team's own. `board` is the team's board as text,
    which the summarizer may use but should not repeat; empty without one.
    """

    form: SummaryForm
    blocks: tuple[Block, ...]
    originals: tuple[Block, ...]
    previous: str | None
    budget: int
    kept: tuple[Block, ...] = ()
    instructions: str = ""
    board: str = ""


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file as the model saw it, to be outlined."""

    path: str
    text: str
    sha: str


Wish = Span | FileText | Topic
"""An artifact requested from outside: a summary, an outline, a judgment."""

Count = Callable[[str], int]
"""Tokens of a text, in the session's counting."""

Summarize = Callable[[Span], str | None]
"""The text of a summary, or None while it is still being written."""

BoardText = Callable[[int], str]
"""The session's board as text of at most so many tokens; empty without notes."""

Outline = Callable[[FileText], str | None]
"""The outline of a file, or None while it is still being made."""


FactsOf = Callable[[Block], Set[str]]
"""The facts of a block, as `facts.facts_of` finds them; one that remembers saves time."""


def no_outline(file: FileText) -> str | None:  # noqa: ARG001
    """Return None, for a process without a parser."""
    return None


def no_board(most: int) -> str:  # noqa: ARG001
    """Return nothing, for a session without a board."""
    return ""


def no_tokens(position: int) -> int:  # noqa: ARG001
    return 0


@dataclass(frozen=True, slots=True)
class Means:
    """What a strategy needs from outside.

    All are pure functions, except that the `board` may have changed at the next revision. `rates`
    are those of the session's model. Without a `judge`, new topics are judged by code. `binds`:
    whether the model binds thinking to what was before it; `one_turn`: whether it takes system
    messages for one turn.
    """

    count: Count
    summarize: Summarize
    outline: Outline = no_outline
    rates: Rates = Rates()
    judge: Judge | None = None
    binds: bool = False
    one_turn: bool = False
    board: BoardText = no_board
    facts_of: FactsOf = facts_of


def never(block: Block) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True, slots=True)
class View:
    """The context just before a model call; read-only."""

    step: int
    """The step of the call, from 1."""
    turn: int
    """Messages of people so far."""
    standing: Mapping[int, Block]
    """The context: its blocks by position, in order."""
    arrivals: Sequence[int]
    """The positions of all originals that ever arrived, ascending."""
    originals: Mapping[int, Block]
    """The originals by position, whether or not they are still in the context."""
    total: int
    """Tokens of the context, as we count them."""
    used: int
    """Tokens of the whole prompt, hidden part included, in the provider's count as far as known."""
    scale: int
    """The provider's count in permille of ours."""
    room: int
    """The window minus what is reserved for the output."""
    guard: Guard
    """What may be replaced or removed, and the groups of calls and results."""
    means: Means
    """Functions from outside: `count`, `summarize`, `outline`; and the model's `rates`."""
    mark: Mark
    """What the strategy kept from the call before."""
    sights: Sights = field(default_factory=Sights)
    """The readings, writes and edits of each file."""
    rounds: Rounds = field(default_factory=Rounds)
    """The last messages of people and answers of models."""
    idle: int | None = None
    """Milliseconds since the call before began, if known."""
    repeats: Repeats = field(default_factory=Repeats)
    """Repeated calls; maintained only if a strategy asks for `repeats`."""
    objective: Objective = "cheap"
    """What the policy optimizes for."""
    known: Mapping[str, int] = field(default_factory=dict)
    """Positions of all blocks and replacements ever in the context, by id."""
    ripening: Ripening = field(default_factory=Ripening)
    """When blocks become ripe; maintained only if a strategy asks for `ripening`."""
    mentions: Mentions = field(default_factory=Mentions)
    """What the originals mention; call `learn` first."""
    tokens_before: Callable[[int], int] = no_tokens
    """Returns the tokens of the blocks before a position, in O(log n)."""
    entered_short: Callable[[Block], bool] = never
    """Returns whether a block replaces an original that no model had seen."""

    @property
    def boundary(self) -> Boundary:
        """What ended just before the newest message of a person, until a model has answered it."""
        return self.rounds.boundary(self.step)

    @property
    def cold(self) -> bool:
        """Whether the cache has expired, so that everything is written again in any case."""
        return self.idle is not None and self.idle > self.means.rates.ttl

    @property
    def fresh(self) -> int:
        """Tokens of blocks that arrived for this step and are in no cache."""
        first = len(self.arrivals)
        while first and self.originals[self.arrivals[first - 1]].born >= self.step:
            first -= 1
        if first == len(self.arrivals):
            return 0
        return self.total - self.tokens_before(self.arrivals[first])

    @property
    def thoughts(self) -> list[Block]:
        """Thinking of the newest turn, in order, if an edit before it makes it invalid."""
        if not self.means.binds:
            return []
        newest = takewhile(lambda p: self.originals[p].turn >= self.turn, reversed(self.arrivals))
        found = [self.standing[place] for place in newest if place in self.standing]
        return [block for block in found if block.type == "thinking"][::-1]

    def billed(self, tokens: int) -> int:
        """Convert our token count to the provider's."""
        return scaled(tokens, self.scale)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits to make, in order, and the mark to keep; without edits only the mark changes.

    `wanted` are summaries, outlines and judgments that were not ready; `skipped` says why a
    strategy that was due did nothing.
    """

    edits: tuple[Edit, ...]
    mark: Mark
    trigger: Trigger = "batch"
    reason: str = ""
    wanted: tuple[Wish, ...] = ()
    skipped: str = ""
