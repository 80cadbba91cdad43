"""What the cache really did: breaks read from the usage that a provider reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compaction.cache import LIFETIME_MS, Break, CacheUse, Cause, priced
from compaction.edits import Revision
from compaction.prices import Price
from compaction.session import Call, Usage

NOISE_TOKENS = 1024
NOISE_SHARE = 0.05
"""Less than this is no break: no provider caches shorter pieces, and re-reading 95 % counts as
re-reading (99 % of quick calls do: docs/sources.md, Recorded sessions)."""

UNSTATED_MS = LIFETIME_MS["5m"]
"""Taken where usage never says which lifetime was written: the shortest that providers state."""

PriceOf = Callable[[str, int | None], Price | None]


@dataclass(slots=True)
class _Seen:
    """What the calls so far have shown: the last one with usage, and the lifetime it left."""

    call: Call
    usage: Usage
    lifetime: int = UNSTATED_MS
    writes: bool = False

    def follow(self, call: Call, usage: Usage) -> None:
        self.call, self.usage = call, usage
        if usage.cache_write:
            self.writes = True
            # The tail is what dies first, and a mixed call writes its tail for five minutes.
            self.lifetime = LIFETIME_MS["5m" if usage.cache_write_5m else "1h"]

    def left(self) -> int:
        """Tokens of the last prompt that can be read now, lifetime aside."""
        if self.writes:
            return self.usage.cache_read + self.usage.cache_write
        # Automatic caches report no writes and keep the whole prompt.
        return self.usage.prompt


def measured(
    calls: Iterable[Call],
    revisions: Iterable[Revision] = (),
    price_of: PriceOf | None = None,
) -> list[CacheUse]:
    """The use of the cache at every call that reported usage, breaks named.

    A break is a call that read less than the call before had left, by over 1,024 tokens and over
    5 %. Causes in the order in which they are asked: model switched; idle beyond the lifetime that
    the usage itself shows; a recorded compaction, clearing or rewind that this step was the first
    to see (`revisions`, as recorded); else unexplained, as a log shows neither a changed tool list
    nor a changed system prompt. `rewritten` are tokens that were cached and were paid again. The
    first call is a cold start, even where it reads what another session left.
    """
    recorded = {revision.step: revision for revision in revisions}
    passed: list[Revision] = []
    uses: list[CacheUse] = []
    seen: _Seen | None = None
    for call in calls:
        if call.step in recorded:
            passed.append(recorded[call.step])
        usage = call.usage
        if usage is None:
            continue
        broken = Break("cold_start") if seen is None else _break(seen, call, usage, passed)
        use = CacheUse(
            step=call.step,
            basis="measured",
            read=usage.cache_read,
            write_5m=usage.cache_write_5m,
            write_1h=usage.cache_write_1h,
            fresh=usage.fresh,
            output=usage.output,
            expected=None if seen is None else _expected(seen, call, usage),
        )
        uses.append(priced(use, broken, price_of(call.model, call.at) if price_of else None))
        seen = seen or _Seen(call, usage)
        seen.follow(call, usage)
        passed.clear()
    return uses


def _idle(seen: _Seen, call: Call) -> int:
    if call.at is None or seen.call.at is None:
        return 0
    return max(call.at - seen.call.at, 0)


def _expected(seen: _Seen, call: Call, usage: Usage) -> int:
    """The plain expectation: all that was left is read, unless its time ran out."""
    return 0 if _idle(seen, call) > seen.lifetime else min(seen.left(), usage.prompt)


def _break(seen: _Seen, call: Call, usage: Usage, passed: list[Revision]) -> Break | None:
    left = seen.left()
    missing = left - usage.cache_read
    if missing <= max(NOISE_TOKENS, left * NOISE_SHARE):
        return None
    rewritten = min(missing, usage.prompt - usage.cache_read)
    if rewritten <= NOISE_TOKENS:
        # A shorter prompt reads less than was left, and pays nothing again.
        return None
    idle = _idle(seen, call)
    if call.model != seen.call.model:
        return Break("model", rewritten)
    if idle > seen.lifetime:
        return Break("lifetime", rewritten, idle=idle, lifetime=seen.lifetime)
    if passed:
        cause: Cause = "rewind" if passed[-1].trigger == "rewind" else "edit"
        return Break(cause, rewritten, revision=passed[-1].number)
    return Break("unexplained", rewritten)
