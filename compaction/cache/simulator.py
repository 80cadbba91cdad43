"""Simulate a provider's prompt cache, and what each call reads from it and writes to it.

The rules and their sources are in docs/record/cache.md. Nothing here reads a clock: call times
are passed in.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

from compaction.cache.uses import Basis, Break, CacheUse, Cause
from compaction.context.session import Usage
from compaction.prices.prices import Price, micros, nanos

TTL = Literal["5m", "1h"]
TTL_MS: dict[TTL, int] = {"5m": 300_000, "1h": 3_600_000}

LOOK_BACK = 20
"""Content blocks searched back from a breakpoint, including its own."""
MOST_BREAKPOINTS = 4


class Breakpoint(NamedTuple):
    """A place up to which a request asks to cache: the tokens and content blocks before it.

    Without `position`, every entry counts as within reach.
    """

    offset: int
    position: int | None = None
    ttl: TTL = "5m"


@dataclass(frozen=True, slots=True)
class Request:
    """One call as the cache sees it.

    Of its `total` tokens, the first `unchanged` are byte for byte those of the previous request;
    `appended` is new content at the end (None: everything after the previous total), `passing` the
    tokens after the last breakpoint that the next request will not contain. `at` is its start (ms
    since the epoch; None: within the TTL). Prefixes shorter than `minimum` are not cached. `tools`
    and `system` are the offsets at which those layers end, so that a cut inside them can be named;
    `changed` and `revision` name any other cut. `images` says whether the prompt contains any.
    `settings` are those in the cache key of the messages (tool choice, thinking, effort), `toggles`
    those in the cache key of the system prompt (web search, citations, speed), as any text: a
    difference from the previous request cuts the prefix at that layer.
    """

    step: int
    total: int
    unchanged: int
    breakpoints: tuple[Breakpoint, ...] = ()
    model: str = ""
    at: int | None = None
    minimum: int = 0
    appended: int | None = None
    tools: int = 0
    system: int = 0
    changed: Cause = "unexplained"
    revision: int | None = None
    output: int = 0
    passing: int = 0
    images: bool = False
    settings: str = ""
    toggles: str = ""
    cut: bool = False

    def paid_again(self, read: int, stood: int, cached: int) -> int:
        """Return the tokens that are paid although the previous request had cached them.

        `stood` is the number of tokens of that request that were meant to stay, `cached` the number
        that it cached.
        """
        stays = max(self.unchanged, stood)
        appended = self.appended
        if appended is None:
            appended = max(self.total - stays, 0)
        return self.total - read - appended - (stays - cached)


@dataclass(slots=True)
class _Chain:
    """Entries of one model on the current prefix, shortest first, all last used at `used`.

    A single time is enough: a request that reads an entry refreshes all shorter ones, the entries
    it writes are as recent, and entries it could not reach are dropped, because nothing guarantees
    that they last.
    """

    entries: list[Breakpoint] = field(default_factory=list)
    used: int | None = None


@dataclass(slots=True)
class CacheState:
    """State of the simulator between calls: plain numbers, a few per call."""

    chains: dict[str, _Chain] = field(default_factory=dict)
    model: str | None = None
    total: int = 0
    cached: int = 0
    passing: int = 0
    images: bool = False
    settings: str = ""
    toggles: str = ""


class _Layered(Protocol):
    """What a simulator remembers of a request apart from its bytes."""

    model: str | None
    images: bool
    settings: str
    toggles: str


def tiers(state: _Layered, request: Request) -> Request:
    """Cut the unchanged prefix where a setting or an image ends it, and update the state."""
    first = state.model is None
    cuts: list[tuple[int, Cause]] = []
    if not first and request.toggles != state.toggles:
        cuts.append((request.tools, "settings"))
    if not first and request.settings != state.settings:
        cuts.append((request.system, "settings"))
    if not first and request.images != state.images:
        cuts.append((request.system, "images"))
    state.images, state.settings = request.images, request.settings
    state.toggles = request.toggles
    at, cause = min(cuts, default=(request.unchanged, request.changed), key=lambda cut: cut[0])
    if at >= request.unchanged:
        return request
    return replace(request, unchanged=at, changed=cause, revision=None, cut=True)


def advance(
    state: CacheState, request: Request, price: Price | None = None, basis: Basis = "simulated"
) -> CacheUse:
    """Send one request: update the state and return where its tokens came from.

    Follows the rules that Anthropic publishes. Work per call does not grow with the session, except
    after a pause of over five minutes, when all entries are checked. Raises ValueError for a
    request that the provider would refuse (over four breakpoints, a shorter TTL before a longer
    one) or that is inconsistent (an unchanged prefix longer than either prompt).
    """
    _check(state, request)
    request = tiers(state, request)
    chain = state.chains.setdefault(request.model, _Chain())
    # Before the cut: entries that had expired must not be blamed on an edit.
    idle, died = _expire(chain, request.at)
    for other in state.chains.values():
        del other.entries[bisect_right(other.entries, request.unchanged, key=_offset) :]
    places = [place for place in request.breakpoints if place.offset >= request.minimum]
    hit = _longest(chain.entries, places)
    read = chain.entries[hit].offset if hit is not None else 0
    end = places[-1].offset if places else 0
    hour = max((p.offset for p in places if p.ttl == "1h"), default=0)
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=read,
        write_5m=end - max(hour, read),
        write_1h=max(hour - read, 0),
        uncached=request.total - end,
        output=request.output,
        expected=None if state.model is None else min(state.cached, request.unchanged),
    )
    broken = _broken(state, request, use, (idle, died, bool(places), bool(chain.entries)))
    if places:
        del chain.entries[0 if hit is None else hit + 1 :]
        chain.entries.extend(place for place in places if place.offset > read)
        chain.used = request.at
    state.model, state.total, state.cached = request.model, request.total, end
    state.passing = request.passing
    return priced(use, broken, price)


def priced(use: CacheUse, broken: Break | None, price: Price | None) -> CacheUse:
    """Return a use with its cost, including that of its break."""
    if broken is not None and broken.rewritten:
        broken = replace(broken, after=use.read)
    if price is None:
        return replace(use, broken=broken)
    if broken is not None:
        broken = replace(broken, cost=_penalty(use, broken.rewritten, price))
    return replace(use, cost=micros(nanos(use.usage, price)), broken=broken)


def _penalty(use: CacheUse, rewritten: int, price: Price) -> int:
    """Return what rewritten tokens cost above reading them, at this call's mix of TTLs."""
    paid = use.prompt - use.read
    if not rewritten or not paid:
        return 0
    rates = price.at(use.prompt)
    mix = nanos(Usage(use.uncached, 0, use.write_5m, use.write_1h), rates)
    return micros(rewritten * mix // paid - rewritten * rates.cache_read)


def _offset(place: Breakpoint) -> int:
    return place.offset


def _check(state: CacheState, request: Request) -> None:
    places = request.breakpoints
    if len(places) > MOST_BREAKPOINTS:
        raise ValueError(f"{len(places)} breakpoints, but at most {MOST_BREAKPOINTS} are allowed")
    for one, next_one in pairwise(places):
        if one.offset >= next_one.offset:
            raise ValueError("breakpoints do not ascend")
        if one.ttl == "5m" and next_one.ttl == "1h":
            raise ValueError("a 5-minute breakpoint comes before a 1-hour one")
    if places and not 0 < places[0].offset <= places[-1].offset <= request.total:
        raise ValueError("a breakpoint is outside the prompt")
    if not 0 <= request.unchanged <= min(request.total, state.total):
        raise ValueError("the unchanged prefix is longer than its prompt")


def _expire(chain: _Chain, at: int | None) -> tuple[int, int | None]:
    """Drop expired entries; return the idle time and the TTL that expired, both in ms."""
    if at is None or chain.used is None:
        return 0, None
    idle = max(at - chain.used, 0)
    if idle <= TTL_MS["5m"]:
        return idle, None
    alive = [entry for entry in chain.entries if TTL_MS[entry.ttl] >= idle]
    if len(alive) == len(chain.entries):
        return idle, None
    died = min(TTL_MS[e.ttl] for e in chain.entries if TTL_MS[e.ttl] < idle)
    chain.entries = alive
    return idle, died


def _longest(entries: list[Breakpoint], places: list[Breakpoint]) -> int | None:
    """Return the index of the longest entry within reach of a breakpoint, trying the last one
    first.
    """
    for place in reversed(places):
        index = bisect_right(entries, place.offset, key=_offset) - 1
        if index < 0:
            return None
        entry = entries[index]
        if place.position is None or entry.position is None:
            return index
        if entry.position > place.position - LOOK_BACK:
            return index
    return None


def _broken(
    state: CacheState, request: Request, use: CacheUse, seen: tuple[int, int | None, bool, bool]
) -> Break | None:
    idle, died, asked, reachable = seen  # ms, ms; whether breakpoints and entries were left
    if state.model is None:
        return Break("cold_start")
    if not asked:
        return Break("minimum") if request.breakpoints else None
    stood = state.total - state.passing
    rewritten = request.paid_again(use.read, stood, state.cached)
    if rewritten <= 0:
        return None
    if state.model != request.model:
        return Break("model", rewritten)
    if died is not None:
        return Break("ttl", rewritten, idle=idle, ttl=died)
    if not request.cut and request.unchanged < request.tools:
        return Break("tools", rewritten)
    if not request.cut and request.unchanged < request.system:
        return Break("system", rewritten)
    if not request.cut and request.unchanged >= min(stood, state.cached or stood) and reachable:
        return Break("look_back", rewritten)
    return Break(request.changed, rewritten, revision=request.revision)
