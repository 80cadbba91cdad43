"""Quotas of teams: counted in memory, written and read every few seconds, so that a limit may be
passed by what several servers take in meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.figures import size
from sessions.models import Quota, QuotaUse, StoredBytes, Team

READ_SECONDS = 5.0
"""How long limits and sums are reused."""
NEAR = 0.9
"""Share of a limit from which pages warn (our choice)."""
LIMITS = ("storage_bytes", "requests_minute", "requests_day", "tokens_month")
KEPT = {"minute": timedelta(hours=1), "day": timedelta(days=40), "month": timedelta(days=400)}
_COUNTED = {
    "requests_minute": ("minute", "requests"),
    "requests_day": ("day", "requests"),
    "tokens_month": ("month", "tokens"),
}
NAMES = {
    "storage_bytes": "storage",
    "requests_minute": "requests per minute",
    "requests_day": "requests per day",
    "tokens_month": "tokens per month",
}


class OverQuota(Exception):
    """A team has used up a quota; `resets` is when it begins again, None for storage."""

    def __init__(self, quota: str, limit: int, used: int, resets: datetime | None) -> None:
        said = size if quota == "storage_bytes" else "{:,}".format
        super().__init__(
            f"The team's quota of {NAMES[quota]} is used up: {said(used)} of {said(limit)}."
        )
        self.quota, self.limit, self.used, self.resets = quota, limit, used, resets

    @property
    def seconds(self) -> float:
        """From now until it resets."""
        return max((self.resets - timezone.now()).total_seconds(), 1) if self.resets else 0


class UsedQuota(NamedTuple):
    """A limit of a team and what it has used of it."""

    quota: str
    limit: int | None
    used: int
    resets: datetime | None

    @property
    def name(self) -> str:
        """As people read it."""
        return NAMES[self.quota]

    @property
    def used_up(self) -> bool:
        """Whether agents are refused."""
        return self.limit is not None and self.used >= self.limit

    @property
    def title(self) -> str:
        """How far it is used."""
        if self.used_up or not self.limit:
            return f"The quota of {self.name} is used up"
        return f"The quota of {self.name} is at {100 * self.used // self.limit} %"

    @property
    def line(self) -> str:
        """What is used of it, when it resets, and what agents get."""
        stored = self.quota == "storage_bytes"
        used, limit = (size(n) if stored else f"{n:,}" for n in (self.used, self.limit or 0))
        refused = "507 for what stores" if stored else "429"
        refused += " for what stores" if self.quota == "tokens_month" else ""
        when = "Until then, agents" if self.used_up else "Once it is used up, agents"
        if self.resets is None:
            when = "Until data is erased, agents" if self.used_up else when
            return f"≈ {used} of {limit}. {when} get {refused}."
        at = f"{self.resets:%b} {self.resets.day}, {self.resets:%H:%M} UTC"
        return f"{used} of {limit}, resets {at}. {when} get {refused}."


@dataclass
class _KnownQuotas:
    """What this process knows of a team: limits, what is used, and what is not yet written."""

    until: float
    quota: Quota | None
    used: dict[str, int]
    fresh: dict[tuple[str, datetime], dict[str, int]] = field(default_factory=dict)


_lock = threading.Lock()
_known: dict[UUID, _KnownQuotas] = {}


def starts(now: datetime) -> dict[str, datetime]:
    """When the current periods began."""
    minute = now.replace(second=0, microsecond=0)
    day = minute.replace(hour=0, minute=0)
    return {"minute": minute, "day": day, "month": day.replace(day=1)}


def resets(period: str, now: datetime) -> datetime:
    """When the next period begins."""
    start = starts(now)[period]
    if period == "month":
        return (start + timedelta(days=32)).replace(day=1)
    return start + (timedelta(minutes=1) if period == "minute" else timedelta(days=1))


def admit(team: UUID, *, stores: bool) -> None:
    """Count a request. Raises OverQuota; storage and tokens refuse only what `stores`."""
    known = _read(team)
    if known.quota is None:
        return
    now = timezone.now()
    for quota in LIMITS:
        limit = getattr(known.quota, quota)
        if limit is None or (not stores and quota in ("storage_bytes", "tokens_month")):
            continue
        if (used := _used(known, quota, now)) >= limit:
            period = _COUNTED[quota][0] if quota in _COUNTED else ""
            raise OverQuota(quota, limit, used, resets(period, now) if period else None)
    _add(known, "requests", 1, now)


def spend(team: UUID, usage: Mapping[str, Any] | None) -> None:
    """Count the tokens of a model call, as its provider reports them."""
    if not isinstance(usage, dict):
        return
    prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    names = (*prompt, "output_tokens", "prompt_tokens", "completion_tokens")
    given = (usage.get(name) for name in names)
    tokens = sum(one for one in given if isinstance(one, int) and one > 0)
    known = _known.get(team)
    if tokens and known is not None and known.quota is not None:
        _add(known, "tokens", tokens, timezone.now())


def flush() -> None:
    """Write what was counted. Raises DatabaseError."""
    with _lock:
        taken = {team: known.fresh for team, known in _known.items() if known.fresh}
        for team in taken:
            _known[team].fresh = {}
            _known[team].until = 0.0
    if not taken:
        return
    for team, periods in taken.items():
        for (period, start), counts in periods.items():
            which: dict[str, Any] = {"team_id": team, "period": period, "start": start}
            more = {name: F(name) + count for name, count in counts.items()}
            if not QuotaUse.objects.filter(**which).update(**more):
                QuotaUse.objects.get_or_create(**which)
                QuotaUse.objects.filter(**which).update(**more)
    now = timezone.now()
    for period, kept in KEPT.items():
        QuotaUse.objects.filter(period=period, start__lt=now - kept).delete()


def set_quota(team: Team, limits: Mapping[str, int | None], actor: audit.Actor) -> None:
    """Change some limits of a team; None removes one."""
    with transaction.atomic():
        Quota.objects.update_or_create(team=team, defaults=dict(limits))
        audit.note(team, actor, "quota.changed", team.slug, **limits)
    with _lock:
        if known := _known.get(team.pk):
            known.until = 0.0


def used_by(team: Team) -> list[UsedQuota]:
    """Each limit of a team with what is used of it, as of the last writing."""
    quota, now = Quota.objects.filter(team=team).first(), timezone.now()
    used = _sums(team.pk, now)
    return [
        UsedQuota(
            name,
            getattr(quota, name, None),
            used[name],
            resets(_COUNTED[name][0], now) if name in _COUNTED else None,
        )
        for name in LIMITS
    ]


def short_of(team: Team) -> list[UsedQuota]:
    """The quotas that a team has used up, or nearly."""
    if not Quota.objects.filter(team=team).exists():
        return []
    return [one for one in used_by(team) if one.limit is not None and one.used >= NEAR * one.limit]


def _read(team: UUID) -> _KnownQuotas:
    known = _known.get(team)
    if known is None or known.until < time.monotonic():
        quota, now = Quota.objects.filter(team_id=team).first(), timezone.now()
        used = _sums(team, now) if quota is not None else {}
        # Sums of a minute that is over must not count for the next.
        left = min(READ_SECONDS, (resets("minute", now) - now).total_seconds())
        with _lock:
            fresh = known.fresh if known is not None else {}
            known = _known[team] = _KnownQuotas(time.monotonic() + left, quota, used, fresh)
    return known


def _sums(team: UUID, now: datetime) -> dict[str, int]:
    rows = QuotaUse.objects.filter(team_id=team, start__in=set(starts(now).values()))
    by_period = {(row.period, row.start): row for row in rows}
    used = {}
    for quota, (period, what) in _COUNTED.items():
        row = by_period.get((period, starts(now)[period]))
        used[quota] = getattr(row, what) if row is not None else 0
    stored = StoredBytes.objects.filter(team_id=team).values_list("bytes", flat=True).first()
    return {**used, "storage_bytes": stored or 0}


def _used(known: _KnownQuotas, quota: str, now: datetime) -> int:
    if quota not in _COUNTED:
        return known.used.get(quota, 0)
    period, what = _COUNTED[quota]
    start = starts(now)[period]
    return known.used.get(quota, 0) + known.fresh.get((period, start), {}).get(what, 0)


def _add(known: _KnownQuotas, what: str, count: int, now: datetime) -> None:
    with _lock:
        for period, start in starts(now).items():
            counts = known.fresh.setdefault((period, start), {})
            counts[what] = counts.get(what, 0) + count
