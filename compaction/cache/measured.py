"""What the cache really did: breaks read from the usage that a provider reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compaction.cache.simulator import LIFETIME_MS, Break, CacheUse, Cause, priced
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
class Seen:
    """What the calls so far have shown; all that the next one is judged by.

    `call` is the last that reported usage, `lifetime` (ms) what it left to live, `reads` and
    `writes` whether any call read from the cache or wrote to it, `passed` number and trigger of
    the revision since then that tells most; of a changed setup what it changed, "tools" or
    "system", instead of the trigger.
    """

    call: Call | None = None
    lifetime: int = UNSTATED_MS
    writes: bool = False
    passed: tuple[int, str] | None = None
    reads: bool = False

    def note(self, revision: Revision) -> None:
        """A revision was recorded that the next call is the first to see.

        Its number is 0 where it is of another run than the one whose context was sent.
        """
        what = _changed(revision)
        # Other tools change the prompt from its beginning on, a system prompt what follows them.
        if self.passed is None or _rank(what) <= _rank(self.passed[1]):
            self.passed = revision.number, what

    def _follow(self, call: Call, usage: Usage) -> None:
        self.call, self.passed = call, None
        self.reads = self.reads or usage.cache_read > 0
        if usage.cache_write:
            self.writes = True
            # The tail is what dies first, and a mixed call writes its tail for five minutes.
            self.lifetime = LIFETIME_MS["5m" if usage.cache_write_5m else "1h"]

    def _left(self, before: Usage, now: Usage) -> int | None:
        """Tokens of the last prompt that can be read now, lifetime aside; None where no usage has
        shown a cache yet."""
        if self.writes:
            return before.cache_read + before.cache_write
        # Automatic caches report no writes and keep the whole prompt.
        return before.prompt if self.reads or now.cache_read else None


_CAUSES: dict[str, Cause] = {"tools": "tools", "system": "system", "rewind": "rewind"}
_SETUPS = ("tools", "system")
"""In the order of the prompt."""


def _changed(revision: Revision) -> str:
    strategies = {edit.strategy for edit in revision.edits}
    found = [setup for setup in _SETUPS if setup in strategies]
    return found[0] if revision.trigger == "setup" and found else revision.trigger


def _rank(what: str) -> int:
    return _SETUPS.index(what) if what in _SETUPS else len(_SETUPS)


def measured(
    calls: Iterable[Call],
    revisions: Iterable[Revision] = (),
    price_of: PriceOf | None = None,
) -> list[CacheUse]:
    """The use of the cache at every call that reported usage, breaks named.

    `revisions` are those that were recorded; see `follow`.
    """
    recorded: dict[int, list[Revision]] = {}
    for revision in revisions:
        recorded.setdefault(revision.step, []).append(revision)
    seen = Seen()
    uses = []
    for call in calls:
        for revision in recorded.get(call.step, []):
            seen.note(revision)
        use = follow(seen, call, price_of=price_of)
        if use is not None:
            uses.append(use)
    return uses


def follow(
    seen: Seen, call: Call, revision: Revision | None = None, price_of: PriceOf | None = None
) -> CacheUse | None:
    """The use of the cache at the next call, its break named; None where it reported no usage.

    A break is a call that read less than the call before had left, by over 1,024 tokens and over 5
    %. Causes in the order in which they are asked: model switched; idle beyond the lifetime that
    the usage itself shows; a recorded compaction, clearing or rewind that this step was the first
    to see (`revision`, or noted before: other tools and another system prompt first); else
    unexplained, as most logs show neither tools nor system prompts. `rewritten` are tokens that
    were cached and were paid again. Until some usage shows a read or a write there is no cache to
    break, and nothing is expected: an automatic cache shows itself by its first read. The first
    call is a cold start, even where it reads what another session left. `seen` is
    brought up to this call.
    """
    if revision is not None:
        seen.note(revision)
    usage = call.usage
    if usage is None:
        return None
    last = seen.call
    before = last.usage if last is not None else None
    use = CacheUse(
        step=call.step,
        basis="measured",
        read=usage.cache_read,
        write_5m=usage.cache_write_5m,
        write_1h=usage.cache_write_1h,
        fresh=usage.fresh,
        output=usage.output,
        expected=_expected(seen, call, usage, before) if before else None,
    )
    broken = _break(seen, call, usage, before) if before else Break("cold_start")
    seen._follow(call, usage)
    return priced(use, broken, price_of(call.model, call.at) if price_of else None)


def _idle(seen: Seen, call: Call) -> int:
    if seen.call is None or call.at is None or seen.call.at is None:
        return 0
    return max(call.at - seen.call.at, 0)


def _expected(seen: Seen, call: Call, usage: Usage, before: Usage) -> int | None:
    """The plain expectation: all that was left is read, unless its time ran out."""
    left = seen._left(before, usage)
    if left is None:
        return None
    return 0 if _idle(seen, call) > seen.lifetime else min(left, usage.prompt)


def _break(seen: Seen, call: Call, usage: Usage, before: Usage) -> Break | None:
    left = seen._left(before, usage)
    if left is None:
        return None
    missing = left - usage.cache_read
    if missing <= max(NOISE_TOKENS, left * NOISE_SHARE):
        return None
    rewritten = min(missing, usage.prompt - usage.cache_read)
    if rewritten <= NOISE_TOKENS:
        # A shorter prompt reads less than was left, and pays nothing again.
        return None
    idle = _idle(seen, call)
    if seen.call is not None and call.model != seen.call.model:
        return Break("model", rewritten)
    if idle > seen.lifetime:
        return Break("lifetime", rewritten, idle=idle, lifetime=seen.lifetime)
    if seen.passed is not None:
        number, what = seen.passed
        return Break(_CAUSES.get(what, "edit"), rewritten, revision=number or None)
    return Break("unexplained", rewritten)
