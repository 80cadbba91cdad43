"""Reservations of calls in progress, and their release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from compaction.budget.spending import Amount
from sessions.actions.budgets import uses
from sessions.models import ModelCall, Reservation, Session, Team, Use

State = Reservation.State


def open_reservations(session: Session) -> QuerySet[Reservation]:
    """Reservations of a session's calls in progress."""
    return Reservation.objects.filter(session=session, state=State.OPEN)


def expired(now: datetime, team: Team | None = None) -> QuerySet[Reservation]:
    """Reservations that were not settled in time, of one team or of all."""
    rows = Reservation.objects.filter(state=State.OPEN, expires__lte=now)
    return rows if team is None else rows.filter(session__team=team)


def settled_by(
    opened: list[Reservation], reports: Sequence[tuple[ModelCall, Amount]]
) -> list[Reservation]:
    """Match reported calls to the reservations they settle: by call id or context, else the oldest
    at the first report of a call."""
    left, ending = list(opened), []
    for call, before in reports:
        if call.uncached is None:
            continue
        named = [one for one in left if one.call and one.call in (call.call, call.context)]
        found = named[:1] or (left[:1] if before == Amount() else [])
        ending += found
        left = [one for one in left if one not in found]
    return ending


def end(held: list[Use], ending: Iterable[Reservation], state: State) -> int:
    """Return reserved amounts to locked uses, skipping reservations that have ended meanwhile;
    return how many ended here. Does not save the uses."""
    rows = Reservation.objects.select_for_update(of=("self",)).order_by("pk")
    still = list(rows.filter(pk__in=[one.pk for one in ending], state=State.OPEN))
    for use in held:
        back = Amount()
        for one in still:
            if use.pk in one.uses:
                back += one.amount
        use.take(use.account.settle(back, Amount()))
    Reservation.objects.filter(pk__in=[one.pk for one in still]).update(state=state)
    return len(still)


def release(session: Session, call: str, now: datetime) -> int:
    """Release the reservation of a call that will not be made, or all of a session; return how
    many."""
    rows = open_reservations(session)
    return _release(list(rows.filter(call=call) if call else rows), now)


def release_expired(team: Team | None, now: datetime) -> int:
    """Release reservations that were not settled in time; return how many."""
    return sum(_release([one], now) for one in expired(now, team).order_by("pk"))


def _release(found: list[Reservation], now: datetime) -> int:
    if not found:
        return 0
    ids = {id for one in found for id in one.uses}
    with transaction.atomic():
        rows = Use.objects.select_for_update(of=("self",)).select_related("budget")
        held = list(rows.filter(pk__in=ids).order_by("pk"))
        ended = end(held, found, State.RELEASED)
        for use in held:
            # A threshold that is no longer exceeded is announced again when it is crossed again.
            use.take(use.account.latched()[0])
        uses.save(held, now)
    return ended
