"""Legal holds: what must not be erased, and why."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.erasure.rows import with_sub_agents
from sessions.models import Hold, Session, Team

REASON_CHARS = 300


class Held(ValueError):
    """A hold forbids the erasure; `str()` says which."""

    def __init__(self, hold: Hold, many: int) -> None:
        about = "the team" if hold.kind == Hold.Kind.TEAM else f"a {hold.kind}"
        sessions = f" for {many} session{'s' * (many > 1)}" if many else ""
        super().__init__(
            f"A legal hold on {about} by {hold.by} forbids it{sessions}: {hold.reason}. "
            "An owner can release it under Settings, Data."
        )
        self.hold = hold


def in_force(team: Team) -> list[Hold]:
    """A team's holds, oldest first."""
    rows = Hold.objects.filter(team=team, released=None).select_related("team")
    return list(rows.order_by("created"))


def held(team: Team, sessions: Iterable[UUID]) -> dict[UUID, Hold]:
    """Those of these sessions that must not be erased, each with a hold on it. A hold on a session
    includes its sub-agents."""
    wanted = set(sessions)
    found: dict[UUID, Hold] = {}
    for hold in in_force(team):
        its = _named(hold)
        on = wanted if its is None else its & wanted
        found |= {pk: hold for pk in on if pk not in found}
    return found


def on_hold(team: Team) -> set[UUID] | None:
    """The sessions of a team that a hold keeps; None if it keeps all."""
    named = [_named(hold) for hold in in_force(team)]
    return None if None in named else set[UUID]().union(*filter(None, named))


def _named(hold: Hold) -> set[UUID] | None:
    """The sessions that a hold is on, with their sub-agents; None if it is on the team."""
    if hold.kind == Hold.Kind.TEAM:
        return None
    if hold.kind == Hold.Kind.TASK:
        rows = Session.objects.for_team(hold.team).filter(task=hold.task)
        return set(with_sub_agents(hold.team, rows.values_list("pk", flat=True)))
    return set(with_sub_agents(hold.team, [hold.session] if hold.session else []))


def refuse_held(team: Team, sessions: Iterable[UUID], *, whole_team: bool = False) -> None:
    """Raise Held if a hold is on one of these sessions, or any on the whole team."""
    on = held(team, sessions)
    holds = in_force(team) if whole_team else []
    if on:
        raise Held(next(iter(on.values())), len(on))
    if holds:
        raise Held(holds[0], 0)


class NothingToHold(ValueError):
    """Nothing has this name; `str()` says what is missing."""


def hold(team: Team, kind: Hold.Kind, value: str, actor: audit.Actor, reason: str) -> Hold:
    """Put a session (by id or external id), a task (by name) or the team on hold. Raises
    NothingToHold."""
    found = Session.objects.named_in(team, value) if kind == Hold.Kind.SESSION else None
    if kind == Hold.Kind.SESSION and (found is None or found.erasing is not None):
        raise NothingToHold("There is no session with this id.")
    if kind == Hold.Kind.TASK and not value:
        raise NothingToHold("Name the task.")
    with transaction.atomic():
        made = Hold.objects.create(
            team=team,
            kind=kind,
            session=found.pk if found else None,
            task=value[:300] if kind == Hold.Kind.TASK else "",
            reason=reason[:REASON_CHARS],
            by=actor.name[:150],
        )
        audit.note(team, actor, "hold.made", str(made.pk), kind=kind, reason=made.reason)
    return made


def release(row: Hold, actor: audit.Actor, reason: str) -> bool:
    """End a hold. Returns False if it had ended."""
    with transaction.atomic():
        rows = Hold.objects.filter(pk=row.pk, released=None)
        ended = rows.update(released=timezone.now())
        if ended:
            said = reason[:REASON_CHARS]
            audit.note(row.team, actor, "hold.released", str(row.pk), kind=row.kind, reason=said)
    return bool(ended)
