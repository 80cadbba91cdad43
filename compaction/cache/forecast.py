"""What the next call should read from the cache, told before it is sent: a forecast for logs.

The simulators work on whole prompts; a log shows less. Here the rules of docs/cache.md are asked
of what a recorded session does show: reported usage of earlier calls, times, and what changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compaction.cache.automatic import whole_steps
from compaction.cache.rules import Confidence, kept_by
from compaction.cache.simulator import LIFETIME_MS, LOOK_BACK, Cause
from compaction.session import Usage

RESTART_PAUSE_MS = 30_000
"""A pause before a prompt in which somebody may have started the client anew (ours)."""

BREAK_TOKENS, BREAK_SHARE = 2_000, 0.02
"""A call that reads less than was left by more than both of these is a break."""

_ALL = -1
"""A change from here on leaves nothing: it stands before the hidden prompt's end."""


MOST_ENTRIES = 512
"""Calls whose prefixes are remembered: further back than any edit of recorded sessions went."""


class Change(NamedTuple):
    """From this block on, the prompt is not what the call before sent; 0 is the first message.

    `revision` is the number of the one that did it, if one did.
    """

    cause: Cause
    block: int
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What a log shows up to a call, its own usage left out.

    `at` is when it was sent (ms; None unknown), `blocks` how many content blocks its prompt shows,
    `changes` what became of those that stood before. `human`: a person wrote since the last call,
    `wrote`: the agent changed files since then that may be part of a program.
    """

    step: int
    model: str
    at: int | None
    blocks: int
    changes: tuple[Change, ...] = ()
    human: bool = False
    wrote: bool = False

    def after(self, passed: Moment | None) -> Moment:
        """The same with what came of a call before it that reported nothing."""
        if passed is None:
            return self
        return replace(
            self,
            changes=passed.changes + self.changes,
            human=passed.human or self.human,
            wrote=passed.wrote or self.wrote,
        )


@dataclass(frozen=True, slots=True)
class Forecast:
    """Tokens that a call should read, of those that the call before `left`; why, if not all.

    `left` None: nothing is known yet (a first call). `broken` by the measure of a break above.
    `guess`: no log says that it is so, only that it was so before. `revision` as of a change.
    `suspect` is a change of what the prompt before held, though it should not lose much: the cause
    of a break that happens after all.
    """

    read: int
    left: int | None
    cause: Cause | None = None
    confidence: Confidence = "best-effort"
    guess: bool = False
    revision: int | None = None
    suspect: Change | None = None

    @property
    def named(self) -> Cause:
        """The cause of a break at this call, foretold or not."""
        return self.cause or (self.suspect.cause if self.suspect else "unexplained")

    @property
    def broken(self) -> bool:
        """Whether this is expected to be a break."""
        return self.left is not None and is_break(self.left, self.read)


def is_break(left: int, read: int) -> bool:
    """Whether a call that read so much of what was left broke the cache."""
    return left - read > max(BREAK_TOKENS, left * BREAK_SHARE)


@dataclass(slots=True)
class Known:
    """What the calls so far have told: all that a forecast rests on.

    `entries` are prefixes in the cache as (blocks, tokens), ascending; `shared` tokens of the
    beginning were read by the first call, or after a break: other sessions use them too. `first`
    are tokens of the first prompt. `restarts` counts pauses after which not even those were read.
    `passed` is what came of calls since `moment` that reported nothing; `reads` whether any call
    read from the cache.
    """

    entries: list[tuple[int, int]] = field(default_factory=list)
    moment: Moment | None = None
    passed: Moment | None = None
    usage: Usage | None = None
    lifetime: int = LIFETIME_MS["5m"]
    writes: bool = False
    reads: bool = False
    shared: int = 0
    first: int = 0
    restarts: int = 0
    wrote: bool = False

    @property
    def left(self) -> int | None:
        """Tokens that the last call left to be read; None before the first."""
        if self.usage is None:
            return None
        if self.writes:
            return self.usage.cache_read + self.usage.cache_write
        return self.usage.prompt


def forecast(known: Known, moment: Moment) -> Forecast:
    """What this call should read, and the cause where that is a break: the one decision that pages,
    dashboards and `calibrate` share. Causes in the order in which they are asked: model, lifetime,
    the change that stands first in the prompt, a restart that nothing tells of, whole steps."""
    left, before = known.left, known.moment
    if left is None or before is None:
        return Forecast(0, None, "cold_start")
    confidence: Confidence = "likely" if known.writes else "best-effort"
    whole = _whole(known, moment.model, left)
    if moment.model != before.model:
        return Forecast(min(known.shared, whole), left, "model", confidence)
    if idle_of(known, moment) > lifetime_of(known, moment):
        return Forecast(min(known.shared, whole), left, "lifetime", confidence)
    change = min(moment.changes, key=lambda one: one.block, default=None)
    if change is not None:
        read = min(_standing(known, moment, change), whole)
        if is_break(left, read):
            return Forecast(read, left, change.cause, confidence, revision=change.revision)
        whole = read
    if _restarted(known, moment):
        return Forecast(0, left, "restart", "best-effort", guess=True)
    cause: Cause | None = "steps" if is_break(left, whole) else None
    suspect = change if change is not None and change.block < before.blocks else None
    return Forecast(whole, left, cause, confidence, suspect=suspect)


def idle_of(known: Known, moment: Moment) -> int:
    """How long after the call before this one was sent (ms); 0 where nobody knows."""
    before = known.moment
    if before is None or before.at is None or moment.at is None:
        return 0
    return max(moment.at - before.at, 0)


def lifetime_of(known: Known, moment: Moment) -> int:
    """How long what was left is kept (ms): as its writes asked, or by published rules."""
    return known.lifetime if known.writes else kept_by(moment.model).lifetime


def _whole(known: Known, model: str, left: int) -> int:
    """What can be read where nothing happened."""
    if known.writes:
        return left
    kept = kept_by(model)
    if kept.answers and known.usage is not None:
        left += known.usage.output
    return whole_steps(left, kept)


def _restarted(known: Known, moment: Moment) -> bool:
    """Whether the client was probably started anew, as it was before in this session.

    Told of clients whose prompt begins with the time of their start: files of a program changed, a
    pause, a prompt.
    """
    wrote = known.wrote or moment.wrote
    paused = idle_of(known, moment) > RESTART_PAUSE_MS
    return bool(known.restarts) and moment.human and wrote and paused


def _standing(known: Known, moment: Moment, change: Change) -> int:
    """Tokens of the longest prefix before a change that an entry was written for, within reach."""
    if change.block == _ALL:
        return 0
    reach = moment.blocks - LOOK_BACK if known.writes else -1
    found = [tokens for blocks, tokens in known.entries if reach < blocks <= change.block]
    return max(found, default=known.shared or known.first // 2)


def observe(known: Known, moment: Moment, usage: Usage) -> None:
    """Take in what a call reported, or, where only messages are known, what was expected of it."""
    expected = forecast(known, moment)
    left, before = known.left, known.moment
    known.wrote = known.wrote or moment.wrote
    if left is None or before is None:
        known.shared, known.first = usage.cache_read, usage.prompt
    elif is_break(left, usage.cache_read):
        _learn(known, moment, expected, usage)
    if moment.changes or known.moment is None or moment.model != known.moment.model:
        first = min((one.block for one in moment.changes), default=_ALL)
        known.entries = [one for one in known.entries if one[0] <= first]
    known.reads = known.reads or usage.cache_read > 0
    if usage.cache_write:
        known.writes = True
        # The tail dies first, and a mixed call writes its tail for five minutes.
        known.lifetime = LIFETIME_MS["5m" if usage.cache_write_5m else "1h"]
    known.moment, known.usage, known.passed = moment, usage, None
    known.entries.append((moment.blocks, known.left or 0))
    del known.entries[:-MOST_ENTRIES]


def _learn(known: Known, moment: Moment, expected: Forecast, usage: Usage) -> None:
    """A break tells how much of the beginning others keep warm, or that of a restart."""
    unheard = expected.cause is None or expected.guess
    unheard = unheard and idle_of(known, moment) <= known.lifetime
    if usage.cache_read == 0 and known.writes and unheard and moment.human:
        known.restarts += 1
        known.wrote = False
        known.entries = []
    elif usage.cache_read and (not known.shared or usage.cache_read < known.shared):
        known.shared = usage.cache_read


def whole_change(cause: Cause, revision: int | None = None) -> Change:
    """A change before the first message: nothing of the prompt can be read."""
    return Change(cause, _ALL, revision)
