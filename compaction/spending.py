"""What calls may spend: accounts with a limit, reserved before a call and settled after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction.budget import WARN, delay_of

Mode = Literal["hard", "soft", "approval"]
Unit = Literal["tokens", "microusd"]
State = Literal["ok", "warn", "over"]

FULL = 1000
"""Permille at which an account is spent; the last threshold that is warned of."""

DAYS_A_MONTH = 30


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens as they are billed, prompt and output, and what they cost in micro-dollars."""

    tokens: int = 0
    microusd: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.microusd + other.microusd)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.microusd - other.microusd)


@dataclass(frozen=True, slots=True)
class Account:
    """What one budget leaves to one session, task or agent.

    `tokens` and `microusd` are limits; None where the budget has none in that unit. `extra` is
    what people granted beyond them. `warned` holds the thresholds, in permille, that were told.
    """

    mode: Mode
    tokens: int | None = None
    microusd: int | None = None
    warn: float = WARN
    used: Amount = Amount()
    reserved: Amount = Amount()
    extra: Amount = Amount()
    warned: frozenset[int] = frozenset()

    @property
    def taken(self) -> Amount:
        """What is spent, and what calls under way may spend."""
        return self.used + self.reserved

    def limits(self) -> tuple[tuple[Unit, int], ...]:
        """The limits there are, with what was granted."""
        both: tuple[tuple[Unit, int | None, int], ...] = (
            ("tokens", self.tokens, self.extra.tokens),
            ("microusd", self.microusd, self.extra.microusd),
        )
        return tuple((unit, limit + more) for unit, limit, more in both if limit is not None)

    def share(self, estimate: Amount = Amount()) -> float:
        """How much of it is taken, by its scarcer unit; a limit of zero is taken from the start."""
        then = self.taken + estimate
        shares = (_of(then, unit) / limit if limit else 1.0 for unit, limit in self.limits())
        return max(shares, default=0.0)

    def exceeded(self, estimate: Amount) -> tuple[Unit, ...]:
        """Units in which a call of that size goes beyond; exactly the limit is within it."""
        then = self.taken + estimate
        return tuple(unit for unit, limit in self.limits() if _of(then, unit) > limit)

    def state(self) -> State:
        """Whether it is spent, nearly so, or neither."""
        share = self.share()
        return "over" if share >= 1 else "warn" if share >= self.warn else "ok"

    def reserve(self, estimate: Amount) -> Account:
        """The account while a call of that size is under way."""
        return replace(self, reserved=self.reserved + estimate)

    def settle(self, reserved: Amount, spent: Amount) -> Account:
        """The account after a call that had reserved so much, and spent so much."""
        return replace(self, reserved=self.reserved - reserved, used=self.used + spent)

    def grant(self, estimate: Amount, more: Amount = Amount()) -> Account:
        """The account with as much beyond its limits as a call of that size needs, and `more`."""
        then = self.taken + estimate
        missing = {unit: max(0, _of(then, unit) - limit) for unit, limit in self.limits()}
        lacks = Amount(missing.get("tokens", 0), missing.get("microusd", 0))
        return replace(self, extra=self.extra + lacks + more)

    def latched(self) -> tuple[Account, tuple[int, ...]]:
        """The account with its thresholds told, and which of them are new, in permille.

        Each is told once, until the share falls below it: then it may be told again.
        """
        share = self.share()
        passed = {mark for mark in (round(self.warn * FULL), FULL) if share * FULL >= mark}
        new = passed - self.warned
        return replace(self, warned=frozenset(passed)), tuple(sorted(new))


def _of(amount: Amount, unit: Unit) -> int:
    return amount.tokens if unit == "tokens" else amount.microusd


@dataclass(frozen=True, slots=True)
class Finding:
    """How one account stands to a call of some size.

    `refused`: a person said no to this very call.
    """

    account: Account
    name: str
    exceeded: tuple[Unit, ...]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may go out, and why not; `delay_ms` is advice for when it does."""

    can_proceed: bool
    reason: str = ""
    require_approval: bool = False
    delay_ms: int = 0


def judge(findings: Sequence[Finding], estimate: Amount) -> Verdict:
    """What all accounts together say of a call: hard ones first, then those that ask a person."""
    delay = max((delay_of(one.account.share(estimate)) for one in findings), default=0)
    beyond = [one for one in findings if one.exceeded]
    for one in beyond:
        if one.account.mode == "hard":
            return Verdict(False, _reason(one, estimate, "and is hard"), delay_ms=delay)
    waits = [one for one in beyond if one.account.mode == "approval"]
    for one in waits:
        if one.refused:
            return Verdict(False, _reason(one, estimate, "and a person refused"), delay_ms=delay)
    if waits:
        reason = _reason(waits[0], estimate, "so a person must agree")
        return Verdict(False, reason, require_approval=True, delay_ms=delay)
    return Verdict(True, delay_ms=delay)


def _reason(one: Finding, estimate: Amount, ending: str) -> str:
    unit = one.exceeded[0]
    limit = dict(one.account.limits())[unit]
    would = _of(one.account.taken + estimate, unit)
    name = "tokens" if unit == "tokens" else "micro-dollars"
    return f"The {one.name} has {limit:,} {name}, this call would take it to {would:,}, {ending}."


@dataclass(frozen=True, slots=True)
class Projection:
    """What days like these come to: means of a day, and 30 of them; `microusd` None where no call
    had a price. All of it is estimated."""

    sessions: float
    calls_per_session: float
    tokens_per_call: float
    microusd_per_call: float | None

    @property
    def tokens_a_day(self) -> float:
        """Sessions a day x calls x tokens."""
        return self.sessions * self.calls_per_session * self.tokens_per_call

    @property
    def microusd_a_day(self) -> float | None:
        """The same in money."""
        if self.microusd_per_call is None:
            return None
        return self.sessions * self.calls_per_session * self.microusd_per_call

    @property
    def tokens_a_month(self) -> float:
        """Of 30 such days."""
        return DAYS_A_MONTH * self.tokens_a_day

    @property
    def microusd_a_month(self) -> float | None:
        """Of 30 such days."""
        a_day = self.microusd_a_day
        return None if a_day is None else DAYS_A_MONTH * a_day


def project(
    days: float, sessions: int, calls: int, reported: tuple[int, int], priced: tuple[int, int]
) -> Projection | None:
    """The projection of some days; None where no call of theirs reported what it took.

    `reported` are the calls that told their tokens and the sum of these, `priced` likewise those
    with a price and micro-dollars: other calls count as the mean of these.
    """
    if not reported[0] or not sessions or days <= 0:
        return None
    return Projection(
        sessions / days,
        calls / sessions,
        reported[1] / reported[0],
        priced[1] / priced[0] if priced[0] else None,
    )
