"""What a provider's prompt cache holds, and what that makes of each call: simulated by its rules.

The rules and their sources stand in docs/cache.md. Nothing here reads a clock: the times of the
calls are passed in.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

from compaction.cache.rules import Confidence
from compaction.prices import Price, micros, nanos
from compaction.session import Usage

Basis = Literal["measured", "estimated", "simulated"]
"""From reported usage; our rules on a recorded context; our rules on a context of a policy."""

Cause = Literal[
    "cold_start",
    "lifetime",
    "model",
    "tools",
    "system",
    "edit",
    "rewind",
    "look_back",
    "minimum",
    "images",
    "settings",
    "thinking",
    "restart",
    "steps",
    "unexplained",
]
"""Why a call could not read what the call before it had left in the cache."""

Lifetime = Literal["5m", "1h"]
LIFETIME_MS: dict[Lifetime, int] = {"5m": 300_000, "1h": 3_600_000}

LOOK_BACK = 20
"""Positions (content blocks) that are searched from a breakpoint on, itself included."""
MOST_BREAKPOINTS = 4


@dataclass(frozen=True, slots=True)
class Break:
    """Cached tokens that had to be paid again at one call, and why.

    `rewritten` are tokens, `cost` is what they cost above reading them (micro-dollars, None
    without a price). `idle` and `lifetime` are milliseconds, where the cause is time; `revision`
    is the number of the edit, where the cause is one. `after` are the tokens that stood before the
    place of the break and could still be read. `guess`: no log says so, only that it was so before.
    """

    cause: Cause
    rewritten: int = 0
    cost: int | None = None
    idle: int | None = None
    lifetime: int | None = None
    revision: int | None = None
    after: int | None = None
    guess: bool = False

    def __str__(self) -> str:
        said = _SAID[self.cause] + (", probably" if self.guess else "")
        if self.cause == "lifetime" and self.idle is not None:
            said += f" (idle {self.idle // 60_000} m {self.idle // 1000 % 60} s)"
        return f"{said} at revision {self.revision}" if self.revision is not None else said


_SAID: dict[Cause, str] = {
    "cold_start": "cold start",
    "lifetime": "lifetime ran out",
    "model": "model switched",
    "tools": "tools changed",
    "system": "system prompt changed",
    "edit": "context edited",
    "rewind": "rewound",
    "look_back": "more than 20 blocks since the last breakpoint",
    "minimum": "below the model's minimum",
    "images": "images came or went",
    "settings": "settings of the request changed",
    "thinking": "thinking of earlier turns taken out",
    "restart": "client started anew",
    "steps": "shorter than the next step that is cached",
    "unexplained": "unexplained",
}


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Where the prompt tokens of one call came from; the four parts are the whole prompt.

    `expected` are the tokens that the call before left to be read, where that can be told: the
    error of our expectation is its difference to `read`. `cost` is in micro-dollars, output
    included; None where the model has no price. `confidence` is that of our rules, for what was
    not measured.
    """

    step: int
    basis: Basis
    read: int
    write_5m: int
    write_1h: int
    fresh: int
    output: int = 0
    cost: int | None = None
    expected: int | None = None
    broken: Break | None = None
    confidence: Confidence = "likely"

    @property
    def prompt(self) -> int:
        """Tokens of the whole prompt."""
        return self.read + self.write_5m + self.write_1h + self.fresh

    @property
    def usage(self) -> Usage:
        """The same as a provider would report it."""
        return Usage(self.fresh, self.read, self.write_5m, self.write_1h, self.output)


class Breakpoint(NamedTuple):
    """A place up to which a request asks to cache: tokens and content blocks before it.

    Without `position` any entry counts as within reach.
    """

    offset: int
    position: int | None = None
    lifetime: Lifetime = "5m"


@dataclass(frozen=True, slots=True)
class Request:
    """One call as the cache sees it.

    `total` tokens, of which the first `unchanged` are those of the request before, byte for byte;
    `appended` are new content at the end (None: all that follows the previous total), `passing`
    those behind the last breakpoint that are not meant to be in the next request. `at` is when
    it began (ms since the epoch; None: within the lifetime). Shorter prefixes than `minimum` are
    not cached. `tools` and `system` are the offsets at which those layers end, so that a cut
    inside them can be named; `changed` and `revision` name any other cut. `images` tells whether
    any stand in the prompt, `settings` are those that the messages are cached under (tool choice,
    thinking, effort), `toggles` those that the system prompt is (web search, citations, speed), as
    any text: what differs from the request before cuts the prefix at that layer.
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
        """Tokens that are paid though the request before left them in the cache.

        `stood` are those of that request that were to stay, `cached` those that it left.
        """
        stays = max(self.unchanged, stood)
        appended = self.appended
        if appended is None:
            appended = max(self.total - stays, 0)
        return self.total - read - appended - (stays - cached)


@dataclass(slots=True)
class _Chain:
    """Entries of one model on the current prefix, shortest first, all last used at `used`.

    One time is enough: a request that reads an entry refreshes all shorter ones, those that it
    writes are as young, and what it could not reach is dropped, as nothing promises it will last.
    """

    entries: list[Breakpoint] = field(default_factory=list)
    used: int | None = None


@dataclass(slots=True)
class CacheState:
    """What the simulator remembers between calls: plain numbers, a few per call."""

    chains: dict[str, _Chain] = field(default_factory=dict)
    model: str | None = None
    total: int = 0
    cached: int = 0
    passing: int = 0
    images: bool = False
    settings: str = ""
    toggles: str = ""


class _Layered(Protocol):
    """What a simulator remembers of a request beside its bytes."""

    model: str | None
    images: bool
    settings: str
    toggles: str


def tiers(state: _Layered, request: Request) -> Request:
    """The request with its unchanged prefix cut where a change beside the bytes ends it.

    Brings those of the state up to this request.
    """
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
    """Send one request: update the state, and say where its tokens came from.

    Follows the rules that Anthropic publishes. Work per call does not grow with the session, but
    for a pause of over five minutes, after which all entries are looked at. Raises ValueError for
    a request that the provider would refuse (over four breakpoints, a shorter lifetime before a
    longer one) or that cannot be (a prefix unchanged beyond either prompt).
    """
    _check(state, request)
    request = tiers(state, request)
    chain = state.chains.setdefault(request.model, _Chain())
    # Before the cut: what had died by itself is not to be blamed on an edit.
    idle, died = _expire(chain, request.at)
    for other in state.chains.values():
        del other.entries[bisect_right(other.entries, request.unchanged, key=_offset) :]
    places = [place for place in request.breakpoints if place.offset >= request.minimum]
    hit = _longest(chain.entries, places)
    read = chain.entries[hit].offset if hit is not None else 0
    end = places[-1].offset if places else 0
    hour = max((p.offset for p in places if p.lifetime == "1h"), default=0)
    use = CacheUse(
        step=request.step,
        basis=basis,
        read=read,
        write_5m=end - max(hour, read),
        write_1h=max(hour - read, 0),
        fresh=request.total - end,
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
    """A use with its dollars, those of its break included."""
    if broken is not None and broken.rewritten:
        broken = replace(broken, after=use.read)
    if price is None:
        return replace(use, broken=broken)
    if broken is not None:
        broken = replace(broken, cost=_penalty(use, broken.rewritten, price))
    return replace(use, cost=micros(nanos(use.usage, price)), broken=broken)


def _penalty(use: CacheUse, rewritten: int, price: Price) -> int:
    """What rewritten tokens cost above reading them, at this call's mix of lifetimes."""
    paid = use.prompt - use.read
    if not rewritten or not paid:
        return 0
    rates = price.at(use.prompt)
    mix = nanos(Usage(use.fresh, 0, use.write_5m, use.write_1h), rates)
    return micros(rewritten * mix // paid - rewritten * rates.cache_read)


def _offset(place: Breakpoint) -> int:
    return place.offset


def _check(state: CacheState, request: Request) -> None:
    places = request.breakpoints
    if len(places) > MOST_BREAKPOINTS:
        raise ValueError(f"{len(places)} breakpoints, at most {MOST_BREAKPOINTS} are taken")
    for one, next_one in pairwise(places):
        if one.offset >= next_one.offset:
            raise ValueError("breakpoints do not ascend")
        if one.lifetime == "5m" and next_one.lifetime == "1h":
            raise ValueError("a breakpoint of 5 minutes stands before one of 1 hour")
    if places and not 0 < places[0].offset <= places[-1].offset <= request.total:
        raise ValueError("a breakpoint lies outside the prompt")
    if not 0 <= request.unchanged <= min(request.total, state.total):
        raise ValueError("the unchanged prefix is longer than a prompt that it is part of")


def _expire(chain: _Chain, at: int | None) -> tuple[int, int | None]:
    """Drop entries that outlived their time; idle ms, and the lifetime that ran out (ms)."""
    if at is None or chain.used is None:
        return 0, None
    idle = max(at - chain.used, 0)
    if idle <= LIFETIME_MS["5m"]:
        return idle, None
    alive = [entry for entry in chain.entries if LIFETIME_MS[entry.lifetime] >= idle]
    if len(alive) == len(chain.entries):
        return idle, None
    died = min(LIFETIME_MS[e.lifetime] for e in chain.entries if LIFETIME_MS[e.lifetime] < idle)
    chain.entries = alive
    return idle, died


def _longest(entries: list[Breakpoint], places: list[Breakpoint]) -> int | None:
    """Index of the longest entry within reach of a breakpoint, the last breakpoint first."""
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
        return Break("lifetime", rewritten, idle=idle, lifetime=died)
    if not request.cut and request.unchanged < request.tools:
        return Break("tools", rewritten)
    if not request.cut and request.unchanged < request.system:
        return Break("system", rewritten)
    if not request.cut and request.unchanged >= min(stood, state.cached or stood) and reachable:
        return Break("look_back", rewritten)
    return Break(request.changed, rewritten, revision=request.revision)
