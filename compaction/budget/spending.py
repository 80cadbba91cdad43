"""Budgets for spending: accounts with a limit, reserved before a call and settled after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from compaction.budget.budget import WARN, delay_of

Mode = Literal["hard", "soft", "approval"]
Unit = Literal["tokens", "microusd"]
State = Literal["ok", "warn", "over"]

FULL = 1000
"""Permille at which an account is spent; the last warning threshold."""

DAYS_A_MONTH = 30


@dataclass(frozen=True, slots=True)
class Amount:
    """Billed tokens, prompt and output, and their cost in micro-dollars."""

    tokens: int = 0
    microusd: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.microusd + other.microusd)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.microusd - other.microusd)


@dataclass(frozen=True, slots=True)
class Account:
    """The budget of one session, task or agent.

    `tokens` and `microusd` are limits; None without a limit in that unit. `extra` was granted by
    people on top. `warned` holds the thresholds, in permille, that have been announced.
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
        """Amount spent plus amount reserved by running calls."""
        return self.used + self.reserved

    def limits(self) -> tuple[tuple[Unit, int], ...]:
        """Return the limits, including what was granted."""
        both: tuple[tuple[Unit, int | None, int], ...] = (
            ("tokens", self.tokens, self.extra.tokens),
            ("microusd", self.microusd, self.extra.microusd),
        )
        return tuple((unit, limit + more) for unit, limit, more in both if limit is not None)

    def share(self, estimate: Amount = Amount()) -> float:
        """Return the share used, of the scarcer unit; a limit of zero counts as used up."""
        then = self.taken + estimate
        shares = (_of(then, unit) / limit if limit else 1.0 for unit, limit in self.limits())
        return max(shares, default=0.0)

    def exceeded(self, estimate: Amount) -> tuple[Unit, ...]:
        """Return the units in which a call of this size exceeds the limit."""
        then = self.taken + estimate
        return tuple(unit for unit, limit in self.limits() if _of(then, unit) > limit)

    def state(self) -> State:
        """Return whether the account is over its limit, near it, or neither."""
        share = self.share()
        return "over" if share >= 1 else "warn" if share >= self.warn else "ok"

    def reserve(self, estimate: Amount) -> Account:
        """Return the account while a call of this size is running."""
        return replace(self, reserved=self.reserved + estimate)

    def settle(self, reserved: Amount, spent: Amount) -> Account:
        """Return the account after a call, given what it had reserved and what it spent."""
        return replace(self, reserved=self.reserved - reserved, used=self.used + spent)

    def grant(self, estimate: Amount, more: Amount = Amount()) -> Account:
        """Return the account with limits raised by what this call lacks, plus `more`."""
        then = self.taken + estimate
        missing = {unit: max(0, _of(then, unit) - limit) for unit, limit in self.limits()}
        lacks = Amount(missing.get("tokens", 0), missing.get("microusd", 0))
        return replace(self, extra=self.extra + lacks + more)

    def latched(self) -> tuple[Account, tuple[int, ...]]:
        """Return the account with its thresholds marked as announced, and the new ones in permille.

        Each is announced once, until the share falls below it.
        """
        share = self.share()
        passed = {mark for mark in (round(self.warn * FULL), FULL) if share * FULL >= mark}
        new = passed - self.warned
        return replace(self, warned=frozenset(passed)), tuple(sorted(new))


def _of(amount: Amount, unit: Unit) -> int:
    return amount.tokens if unit == "tokens" else amount.microusd


@dataclass(frozen=True, slots=True)
class AccountState:
    """An account judged for a call of some size.

    `refused`: a person refused this call.
    """

    account: Account
    name: str
    exceeded: tuple[Unit, ...]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may be sent, and why not; `delay_ms` is advice."""

    can_proceed: bool
    reason: str = ""
    require_approval: bool = False
    delay_ms: int = 0


def judge(findings: Sequence[AccountState], estimate: Amount) -> Verdict:
    """Judge a call by all accounts: hard limits first, then those that need an approval."""
    delay = max((delay_of(one.account.share(estimate)) for one in findings), default=0)
    beyond = [one for one in findings if one.exceeded]
    for one in beyond:
        if one.account.mode == "hard":
            return Verdict(False, _reason(one, estimate, "and is hard"), delay_ms=delay)
    waits = [one for one in beyond if one.account.mode == "approval"]
    for one in waits:
        if one.refused:
            return Verdict(False, _reason(one, estimate, "and a person refused it"), delay_ms=delay)
    if waits:
        reason = _reason(waits[0], estimate, "so a person must approve")
        return Verdict(False, reason, require_approval=True, delay_ms=delay)
    return Verdict(True, delay_ms=delay)


def _reason(one: AccountState, estimate: Amount, ending: str) -> str:
    unit = one.exceeded[0]
    limit = dict(one.account.limits())[unit]
    would = _of(one.account.taken + estimate, unit)
    name = "tokens" if unit == "tokens" else "micro-dollars"
    return f"The {one.name} has {limit:,} {name}; this call would bring it to {would:,}, {ending}."


@dataclass(frozen=True, slots=True)
class Projection:
    """Spending projected from a period: daily means, and 30 such days; all of it estimated.

    `microusd` is None if no call had a price.
    """

    sessions: float
    calls_per_session: float
    tokens_per_call: float
    microusd_per_call: float | None

    @property
    def tokens_a_day(self) -> float:
        """Sessions per day x calls x tokens."""
        return self.sessions * self.calls_per_session * self.tokens_per_call

    @property
    def microusd_a_day(self) -> float | None:
        """Sessions per day x calls x micro-dollars."""
        if self.microusd_per_call is None:
            return None
        return self.sessions * self.calls_per_session * self.microusd_per_call

    @property
    def tokens_a_month(self) -> float:
        """Tokens of 30 such days."""
        return DAYS_A_MONTH * self.tokens_a_day

    @property
    def microusd_a_month(self) -> float | None:
        """Micro-dollars of 30 such days."""
        a_day = self.microusd_a_day
        return None if a_day is None else DAYS_A_MONTH * a_day


def project(
    days: float, sessions: int, calls: int, reported: tuple[int, int], priced: tuple[int, int]
) -> Projection | None:
    """Project the spending of some days; None if no call reported usage.

    `reported` is the number of calls that reported tokens and their sum, `priced` that of calls
    with a price and their micro-dollars: other calls count as the mean of these.
    """
    if not reported[0] or not sessions or days <= 0:
        return None
    return Projection(
        sessions / days,
        calls / sessions,
        reported[1] / reported[0],
        priced[1] / priced[0] if priced[0] else None,
    )
