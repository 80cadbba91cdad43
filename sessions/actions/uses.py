"""Uses of budgets as rows: found or begun, locked, and told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q

from compaction import prices
from compaction.budget import delay_of
from compaction.spending import Amount
from sessions.actions.budgets import term_begins
from sessions.models import Budget, ModelCall, Session, Use
from sessions.models.sessions import SOURCE_LIVE
from sessions.models.values import usage_of

FIELDS = ("used", "reserved", "extra")


def spent_by(call: ModelCall) -> Amount:
    """What a call took, as its usage tells; nothing where none is reported, or no price known."""
    usage = usage_of(call)
    if usage is None:
        return Amount()
    price = prices.price(call.model, call.at)
    cost = prices.cost(usage, price) if price else 0
    return Amount(usage.prompt + usage.output, cost)


def keys_of(session: Session) -> dict[str, str]:
    """What a session is called in each scope; empty where it is of no task, or of no agent."""
    return {"session": session.external_id, "task": session.task, "agent": session.agent}


def budgets_for(session: Session) -> list[Budget]:
    """Budgets that count what a live session spends, those that are not in force included."""
    if session.source != SOURCE_LIVE:
        return []
    wanted = Q(pk=None)
    for scope, key in keys_of(session).items():
        if key:
            wanted |= Q(scope=scope, name__in=("", key))
    return list(Budget.objects.filter(wanted, team=session.team_id).order_by("pk"))


def in_force(budgets: Iterable[Budget]) -> set[Any]:
    """Ids of those that limit: the active ones, a named one in place of the nameless."""
    active = [one for one in budgets if one.active]
    named = {(one.scope, one.period) for one in active if one.name}
    return {one.pk for one in active if one.name or (one.scope, one.period) not in named}


def stored(session: Session, budgets: Sequence[Budget], now: datetime) -> list[Use]:
    """The uses that there are of these budgets by a session now."""
    return list(_rows(session, budgets, now).select_related("budget"))


def _rows(session: Session, budgets: Sequence[Budget], now: datetime) -> Any:
    keys, wanted = keys_of(session), Q(pk=None)
    for one in budgets:
        wanted |= Q(budget=one, key=keys[one.scope], term=one.term(now))
    return Use.objects.filter(wanted)


def locked(
    session: Session, budgets: Sequence[Budget], now: datetime, also: Iterable[int] = ()
) -> tuple[list[Use], set[int]]:
    """The uses of these budgets and those of the ids in `also`, for this transaction alone; and
    which of them were begun here, with what calls have spent by now.

    Whoever begins one holds its budget; then uses are locked by their ids. Nobody waits in a ring.
    """
    there = set(_rows(session, budgets, now).values_list("budget_id", flat=True))
    begun = set()
    for one in budgets:
        if one.pk not in there and (made := _begin(session, one, now)) is not None:
            begun.add(made)
    ids = {*_rows(session, budgets, now).values_list("pk", flat=True), *also}
    rows = Use.objects.select_for_update(of=("self",)).select_related("budget")
    return list(rows.filter(pk__in=ids).order_by("pk")), begun


def _begin(session: Session, budget: Budget, now: datetime) -> int | None:
    if Budget.objects.select_for_update().filter(pk=budget.pk).first() is None:
        return None
    key, term = keys_of(session)[budget.scope], budget.term(now)
    known = Use.objects.filter(budget=budget, key=key, term=term).exists()
    if known:  # somebody was quicker, while we waited
        return None
    spent = _spent_before(session, budget, key, now)
    return Use.objects.create(
        budget=budget, key=key, term=term, used_tokens=spent.tokens, used_microusd=spent.microusd
    ).pk


_COLUMN = {"session": "external_id", "task": "task", "agent": "agent"}


def _spent_before(session: Session, budget: Budget, key: str, now: datetime) -> Amount:
    """What calls of live sessions have spent, those of this transaction included."""
    sessions = Session.objects.filter(
        team=session.team_id, source=SOURCE_LIVE, **{_COLUMN[budget.scope]: key}
    )
    calls = ModelCall.objects.filter(session__in=sessions, fresh__isnull=False)
    since = term_begins(budget, now.astimezone(UTC))
    if since is not None:
        calls = calls.filter(at__gte=int(since.timestamp() * 1000))
    spent = Amount()
    for call in calls.defer("usage_raw").iterator():
        spent += spent_by(call)
    return spent


def has_unpriced(use: Use) -> bool:
    """Whether calls of it reported usage of a model without a known price: their cost is unknown,
    and counted as none."""
    budget = use.budget
    sessions = Session.objects.filter(
        team=budget.team_id, source=SOURCE_LIVE, **{_COLUMN[budget.scope]: use.key}
    )
    calls = ModelCall.objects.filter(session__in=sessions, fresh__isnull=False)
    models = calls.order_by().values_list("model", flat=True).distinct()
    return any(prices.price(model, None) is None for model in models)


def save(uses: Iterable[Use], now: datetime) -> None:
    """Store what became of locked uses."""
    rows = list(uses)
    for one in rows:
        one.changed = now
    names = [f"{field}_{unit}" for field in FIELDS for unit in ("tokens", "microusd")]
    Use.objects.bulk_update(rows, [*names, "warned", "changed"])


def fullest(budget: Budget, now: datetime) -> list[Use]:
    """What was taken of a budget in this term, the fullest first."""
    rows = budget.uses.filter(term=budget.term(now)).select_related("budget")
    return sorted(rows, key=lambda use: (-use.account.share(), use.key))


def told(use: Use) -> dict[str, Any]:
    """A use as the API tells it; `share` is of what it may spend, granted included."""
    account, budget = use.account, use.budget
    share = account.share()
    return {
        "id": str(budget.pk),
        "scope": budget.scope,
        "key": use.key,
        "period": budget.period,
        "term": use.term,
        "mode": budget.mode,
        "used": asdict(account.used),
        "reserved": asdict(account.reserved),
        "limit": {"tokens": budget.tokens, "microusd": budget.microusd},
        "granted": asdict(account.extra),
        "share": round(share, 6),
        "state": account.state(),
        "delay_ms": delay_of(share),
    }


def called(use: Use) -> str:
    """A use in words, as "task ferry a day"."""
    period = f" a {use.budget.period}" if use.budget.period else ""
    return f"{use.budget.scope} {use.key}{period}"
