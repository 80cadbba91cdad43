"""What calls under way hold of budgets, and how it comes back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from compaction.spending import Amount
from sessions.actions import uses
from sessions.models import ModelCall, Reservation, Session, Team, Use

State = Reservation.State


def open_reservations(session: Session) -> QuerySet[Reservation]:
    """What calls of a session hold that are under way."""
    return Reservation.objects.filter(session=session, state=State.OPEN)


def expired(now: datetime, team: Team | None = None) -> QuerySet[Reservation]:
    """What nobody settled in time, of one team or of all."""
    rows = Reservation.objects.filter(state=State.OPEN, expires__lte=now)
    return rows if team is None else rows.filter(session__team=team)


def settled_by(
    opened: list[Reservation], reports: Sequence[tuple[ModelCall, Amount]]
) -> list[Reservation]:
    """Reservations that these calls settle: that of a call's id or context, else, at the first
    report of a call, the oldest."""
    left, ending = list(opened), []
    for call, before in reports:
        if call.fresh is None:
            continue
        named = [one for one in left if one.call and one.call in (call.call, call.context)]
        found = named[:1] or (left[:1] if before == Amount() else [])
        ending += found
        left = [one for one in left if one not in found]
    return ending


def end(held: list[Use], ending: Iterable[Reservation], state: State) -> int:
    """Give back to locked uses what these reservations hold, but for those that ended meanwhile;
    how many did it here. The uses are not stored yet."""
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
    """Give back what a call had reserved that will not be made, or all calls of a session where
    none is named; how many reservations."""
    rows = open_reservations(session)
    return _release(list(rows.filter(call=call) if call else rows), now)


def release_expired(team: Team | None, now: datetime) -> int:
    """Give back what nobody settled in time; how many reservations."""
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
            # What falls below a threshold is warned of again when it passes it again.
            use.take(use.account.latched()[0])
        uses.save(held, now)
    return ended
