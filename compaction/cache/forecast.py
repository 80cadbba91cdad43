"""Forecast what the next call should read from the cache, from what a log shows.

The simulators work on whole prompts; a log shows less. This module applies the rules of
docs/record/cache.md to what a recorded session does show: reported usage of earlier calls, times,
and changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from compaction.cache.automatic import whole_steps
from compaction.cache.rules import Confidence, kept_by
from compaction.cache.simulator import LOOK_BACK, TTL_MS
from compaction.cache.uses import Cause
from compaction.context.session import Usage

RESTART_PAUSE_MS, RESTARTS = 30_000, 2
"""Minimum pause before a prompt that suggests a client restart, and the restarts seen before in the
session (our choices)."""

LATE_MS = 10_000
"""Time past the TTL within which entries are still found, as logs give times of responses, not of
requests (measured: docs/record/cache.md, Forecasts)."""

BREAK_TOKENS, BREAK_SHARE = 2_000, 0.02
"""A call that reads less than was cached by more than both of these is a break."""

_ALL = -1
"""A change within the hidden prompt, after which nothing can be read."""


MOST_ENTRIES = 512
"""Calls whose prefixes are remembered: more than any edit of a recorded session reached back."""


class PromptChange(NamedTuple):
    """From this block on, the prompt differs from that of the call before; 0 is the first message.

    `revision` is the number of the revision that caused it, if any.
    """

    cause: Cause
    block: int
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What a log shows about a call, without its usage.

    `at` is when it was sent (ms; None unknown), `blocks` the number of content blocks in its
    prompt, `changes` what happened to earlier blocks. `human`: a person wrote since the last call;
    `wrote`: since then the agent changed files that may belong to a program.
    """

    step: int
    model: str
    at: int | None
    blocks: int
    changes: tuple[PromptChange, ...] = ()
    human: bool = False
    wrote: bool = False

    def after(self, passed: Moment | None) -> Moment:
        """Merge with an earlier call that reported no usage."""
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
    """Tokens that a call should read, out of those the call before `left` in the cache, and the
    cause.

    `left` is None if nothing is known yet (a first call). `guess`: the log does not show the cause,
    but it happened before in this session. `revision` as in `PromptChange`. `suspect`: what should
    not lose much, or usually loses nothing: the cause if the call breaks after all. `cut`: an
    expired TTL is the cause, but without it a change of the context would be.
    """

    read: int
    left: int | None
    cause: Cause | None = None
    confidence: Confidence = "best-effort"
    guess: bool = False
    revision: int | None = None
    suspect: PromptChange | None = None
    cut: bool = False

    @property
    def named(self) -> Cause:
        """The cause to name if this call is a break, forecast or not."""
        return self.cause or (self.suspect.cause if self.suspect else "unexplained")

    @property
    def broken(self) -> bool:
        """Whether this call is expected to be a break."""
        return self.left is not None and is_break(self.left, self.read)


def is_break(left: int, read: int) -> bool:
    """Return whether a call that read this much of what was cached broke the cache."""
    return left - read > max(BREAK_TOKENS, left * BREAK_SHARE)


@dataclass(slots=True)
class ForecastState:
    """What the calls so far have shown: everything that a forecast uses.

    `entries` are prefixes in the cache as (blocks, tokens), ascending. The first `shared` tokens
    were read by the first call, or after a break: other sessions use them too. `first` is the size
    of the first prompt in tokens. `restarts` counts pauses after which not even the shared tokens
    were read. `passed` merges the calls since `moment` that reported no usage; `reads` says whether
    any call read from the cache.
    """

    entries: list[tuple[int, int]] = field(default_factory=list)
    moment: Moment | None = None
    passed: Moment | None = None
    usage: Usage | None = None
    ttl: int = TTL_MS["5m"]
    writes: bool = False
    reads: bool = False
    shared: int = 0
    first: int = 0
    restarts: int = 0
    wrote: bool = False

    @property
    def left(self) -> int | None:
        """Tokens that the last call left in the cache; None before the first."""
        if self.usage is None:
            return None
        if self.writes:
            return self.usage.cache_read + self.usage.cache_write
        return self.usage.prompt


def forecast(known: ForecastState, moment: Moment) -> Forecast:
    """Predict what a call reads, and the cause if that is a break.

    Pages, dashboards and `calibrate` all use this decision. Causes are checked in this order:
    model, TTL, the first change in the prompt, a restart that the log does not show, whole
    increments.
    """
    left, before = known.left, known.moment
    if left is None or before is None:
        return Forecast(0, None, "cold_start")
    confidence: Confidence = "likely" if known.writes else "best-effort"
    whole = _whole(known, moment.model, left)
    if moment.model != before.model:
        return Forecast(min(known.shared, whole), left, "model", confidence)
    late = idle_of(known, moment) - ttl_of(known, moment)
    change = min(moment.changes, key=lambda one: one.block, default=None)
    read = whole if change is None else min(_standing(known, moment, change), whole)
    cut = change is not None and is_break(left, read)
    if late > LATE_MS:
        return Forecast(min(known.shared, whole), left, "ttl", confidence, cut=cut)
    if change is not None:
        if cut:
            return Forecast(read, left, change.cause, confidence, revision=change.revision)
        whole = read
    if _restarted(known, moment):
        return Forecast(0, left, "restart", "best-effort", guess=True)
    cause: Cause | None = "steps" if is_break(left, whole) else None
    suspect = change if change is not None and change.block < before.blocks else None
    if late > 0:
        suspect = PromptChange("ttl", 0)
    elif suspect is None and known.writes and moment.blocks - before.blocks > LOOK_BACK:
        # Unless the client set a breakpoint in between, which logs do not show.
        suspect = PromptChange("look_back", before.blocks)
    return Forecast(whole, left, cause, confidence, suspect=suspect)


def idle_of(known: ForecastState, moment: Moment) -> int:
    """Return the time since the call before was sent (ms); 0 if unknown."""
    before = known.moment
    if before is None or before.at is None or moment.at is None:
        return 0
    return max(moment.at - before.at, 0)


def ttl_of(known: ForecastState, moment: Moment) -> int:
    """Return the TTL of what was cached (ms): as its writes requested, or by published rules."""
    return known.ttl if known.writes else kept_by(moment.model).ttl


def _whole(known: ForecastState, model: str, left: int) -> int:
    """Return the tokens that can be read if nothing changed."""
    if known.writes:
        return left
    kept = kept_by(model)
    if kept.answers and known.usage is not None:
        left += known.usage.output
    return whole_steps(left, kept)


def _restarted(known: ForecastState, moment: Moment) -> bool:
    """Return whether the client was probably restarted, as it was before in this session.

    Applies to clients that put their start time at the beginning of the prompt: program files
    changed, then a pause, then a prompt.
    """
    wrote = known.wrote or moment.wrote
    paused = idle_of(known, moment) > RESTART_PAUSE_MS
    return known.restarts >= RESTARTS and moment.human and wrote and paused


def _standing(known: ForecastState, moment: Moment, change: PromptChange) -> int:
    """Return the tokens of the longest cached prefix before a change, within reach."""
    if change.block == _ALL:
        return 0
    reach = moment.blocks - LOOK_BACK if known.writes else -1
    found = [tokens for blocks, tokens in known.entries if reach < blocks <= change.block]
    return max(found, default=known.shared or known.first // 2)


def observe(known: ForecastState, moment: Moment, usage: Usage) -> None:
    """Update with the usage of a call, or with the expected usage if only messages are known."""
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
        # The tail expires first, and a mixed call writes its tail for five minutes.
        known.ttl = TTL_MS["5m" if usage.cache_write_5m else "1h"]
    known.moment, known.usage, known.passed = moment, usage, None
    known.entries.append((moment.blocks, known.left or 0))
    del known.entries[:-MOST_ENTRIES]


def leave(known: ForecastState, usage: Usage) -> None:
    """Update with the last request of a response that took several: it leaves the cache so."""
    known.usage = usage
    known.writes = known.writes or usage.cache_write > 0
    if known.entries:
        known.entries[-1] = (known.entries[-1][0], known.left or 0)


def _learn(known: ForecastState, moment: Moment, expected: Forecast, usage: Usage) -> None:
    """Learn from a break how much of the beginning is shared, or that the client restarted."""
    unheard = expected.cause is None or expected.guess
    unheard = unheard and idle_of(known, moment) <= known.ttl
    if usage.cache_read == 0 and known.writes and unheard and moment.human:
        known.restarts += 1
        known.wrote = False
        known.entries = []
    elif usage.cache_read and (not known.shared or usage.cache_read < known.shared):
        known.shared = usage.cache_read


def whole_change(cause: Cause, revision: int | None = None) -> PromptChange:
    """Build a change before the first message, after which nothing can be read."""
    return PromptChange(cause, _ALL, revision)
