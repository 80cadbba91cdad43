"""What a strategy looks at and what it proposes: the one signature of all strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from compaction.cache.economy import Objective, Rates
from compaction.context import Block
from compaction.edits import Edit, Trigger
from compaction.files.sights import Sights
from compaction.protect import Guard
from compaction.repeats import Repeats
from compaction.ripening import Ripening
from compaction.tokens import scaled
from compaction.topic import Boundary, Judge, Rounds, Topic

SummaryForm = Literal["nine", "progress", "done", "window"]
"""`nine`: the nine sections in XML; `progress` and `done`: the forms of a task that goes on and of
one that is over; `window`: the short note of the sliding window."""

Mark = Mapping[str, int]
"""How far a strategy has looked and what it decided: small numbers, stored with the state."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is to be summarised: `blocks` in order, on top of the `previous` summary.

    `blocks` are as the model sees them, `originals` what stood in their places at first. `kept`
    are user messages of the span that stay in the context verbatim. `budget` is the most that the
    summary may take, in tokens. `instructions` are the team's own. `board` is the anchor board as
    text, which whoever writes the summary may know but has not to repeat; empty without one.
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
    """The text of a file as the model was shown it, of which an outline is asked for."""

    path: str
    text: str
    sha: str


Wish = Span | FileText | Topic
"""What somebody outside is to make: a summary, an outline, a judgement."""

Count = Callable[[str], int]
"""Tokens of a text, in the session's counting."""

Summarize = Callable[[Span], str | None]
"""The text of a summary, or None while it is still being written."""

Outline = Callable[[FileText], str | None]
"""The outline of a file, or None while it is still being made."""


def no_outline(file: FileText) -> str | None:  # noqa: ARG001
    """Where there is no parser: the text of a file stands."""
    return None


def no_tokens(position: int) -> int:  # noqa: ARG001
    """Before the beginning."""
    return 0


@dataclass(frozen=True, slots=True)
class Means:
    """What a strategy needs from outside; all are pure functions of what they are given, and
    `rates` what the session's model costs. Without a `judge` new topics are judged by code."""

    count: Count
    summarize: Summarize
    outline: Outline = no_outline
    rates: Rates = Rates()
    judge: Judge | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The context just before a model call, to be read only.

    `arrivals` are the positions of all originals that ever arrived, ascending; `standing` is what
    the model would see. `used` are the tokens of the whole prompt in the provider's count as far as
    known (hidden prompt included), `scale` permille of our count that this is. `room` is the
    window less what is reserved for output. `resolved` are positions of failed results whose
    failure was mended, in the order in which that happened.
    """

    step: int
    turn: int
    standing: Mapping[int, Block]
    arrivals: Sequence[int]
    originals: Mapping[int, Block]
    total: int
    used: int
    scale: int
    room: int
    guard: Guard
    means: Means
    mark: Mark
    sights: Sights = field(default_factory=Sights)
    """Which readings, writes and edits of which file arrived."""
    rounds: Rounds = field(default_factory=Rounds)
    """What people wrote and models answered last."""
    idle: int | None = None
    """Milliseconds since the call before began, as far as known."""
    repeats: Repeats = field(default_factory=Repeats)
    """What was asked again; known only where a policy replaces."""
    objective: Objective = "cheap"
    known: Mapping[str, int] = field(default_factory=dict)
    """Positions of all blocks and replacements that ever stood, by id."""
    ripening: Ripening = field(default_factory=Ripening)
    """When tool inputs and outputs are ripe to leave; known only where a policy asks."""
    tokens_before: Callable[[int], int] = no_tokens
    """Tokens of the standing blocks before a position, in O(log n)."""

    @property
    def boundary(self) -> Boundary:
        """What ended just before the newest message of a person, while no model has answered it."""
        return self.rounds.boundary(self.step)

    @property
    def cold(self) -> bool:
        """Whether the cache has outlived its time: all is written anew whatever is edited."""
        return self.idle is not None and self.idle > self.means.rates.lifetime

    @property
    def fresh(self) -> int:
        """Tokens of standing blocks that arrived for this step: no cache holds them."""
        first = len(self.arrivals)
        while first and self.originals[self.arrivals[first - 1]].born >= self.step:
            first -= 1
        if first == len(self.arrivals):
            return 0
        return self.total - self.tokens_before(self.arrivals[first])

    def billed(self, tokens: int) -> int:
        """Tokens of our count in the provider's."""
        return scaled(tokens, self.scale)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Edits to make, in order, and the mark to keep; an empty one only moves the mark.

    `wanted` are summaries, outlines and judgements that were not ready; `skipped` says why a
    strategy that was due did nothing.
    """

    edits: tuple[Edit, ...]
    mark: Mark
    trigger: Trigger = "batch"
    reason: str = ""
    wanted: tuple[Wish, ...] = ()
    skipped: str = ""


Propose = Callable[[View, Any], Proposal]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy under its name: what it does, and the frozen dataclass of its parameters."""

    name: str
    propose: Propose
    parameters: type[Any]
    mark: Mark = field(default_factory=dict)
