"""What waits for a person, on the dashboard: how many of each, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import Truncator

from compaction.budget.budget import WARN
from sessions.access import allowed
from sessions.actions.assessments.session_verdicts import lost_and_needed
from sessions.actions.live.answer import standing_of
from sessions.actions.live.forecasts import forecasts
from sessions.actions.operations.quotas import short_of
from sessions.actions.reviews.losses import stored_cost
from sessions.actions.reviews.ranks import WORST
from sessions.actions.reviews.reservations import open_to
from sessions.figures import percent
from sessions.models import ReviewItem, Session, Team
from sessions.models.dashboard.waiting import MOST, running_sessions, waiting_work
from sessions.views.live.low_recall import low_recall

NAMED = 3
"""Most sessions named in a row."""


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One kind of thing that waits, and the button that leads to it."""

    title: str
    line: str
    button: str
    url: str
    worst: tuple[tuple[str, str, str], ...] = ()
    """Of what waits, the first: where it is, its address, and what was lost there."""


def waiting_rows(request: HttpRequest, team: Team) -> list[WaitingRow]:
    """What waits in a team, the most urgent first; empty if nothing does."""
    return list(_rows(request, team))


def _rows(request: HttpRequest, team: Team) -> Iterator[WaitingRow]:
    for quota in short_of(team):
        yield WaitingRow(quota.title, quota.line, "Open", reverse("team"))
    found = waiting_work(team)
    if found.approvals:
        title = _count(found.approvals, "call", "waits for approval", "wait for approval")
        yield WaitingRow(title, "Over a budget.", "Decide", reverse("budgets"))
    yield from _running(team)
    if found.failed_jobs:
        title = _count(found.failed_jobs, "job", "failed", "failed")
        line = "In the last 24 hours. Each says why, and can be tried again."
        yield WaitingRow(title, line, "Open", reverse("jobs"))
    if found.rollout is not None:
        pk, state, share, version = found.rollout
        url = reverse("rollout", args=[pk])
        yield WaitingRow(f"{version} is at {share} %", f"Rollout {state}.", "Open", url)
    if isinstance(request.user, User) and allowed(request, team, "review"):
        items = open_to(team, request.user).order_by(*WORST).values_list("pk", flat=True)
        waiting = list(items[:MOST])
        if waiting:
            title = _count(len(waiting), "compaction", "waits for review", "wait for review")
            line = "" if len(waiting) == 1 else "The worst:"
            yield WaitingRow(title, line, "Review", reverse("reviews"), _worst(waiting[:NAMED]))


_SHOWN = (
    *("revision__number", "revision__step", "revision__run__origin"),
    *("revision__run__session__title", "revision__run__session__external_id"),
    *("revision__fact_ledger__after", "revision__fact_ledger__missed"),
)
"""What a row shows of a compaction: composing a query for all columns takes longer than it does."""


def _worst(keys: list[UUID]) -> tuple[tuple[str, str, str], ...]:
    rows = ReviewItem.objects.filter(pk__in=keys).order_by(*WORST).only(*_SHOWN)
    related = rows.select_related("revision__run__session", "revision__fact_ledger")
    return tuple(_lost(one) for one in related)


def _lost(item: ReviewItem) -> tuple[str, str, str]:
    """Where a compaction is, its address, what its loss cost with how many lost facts were needed
    again."""
    revision, ledger = item.revision, getattr(item.revision, "fact_ledger", None)
    cost = stored_cost(ledger.after) if ledger else ""
    found = [cost] if cost else []
    found += [lost_and_needed(ledger.missed)] if ledger and ledger.missed else []
    run = revision.run
    url = reverse("revision", args=[run.session_id, run.origin, revision.number])
    return f"Step {revision.step}, {_name(run.session)}", url, ", ".join(found)


def _running(team: Team) -> Iterator[WaitingRow]:
    """Of the running sessions that moved last, the paused ones and those near their limit, with
    what comes next in the fullest; and those whose recall is low."""
    running = running_sessions(team)
    paused = [one for one in running if one.paused]
    if paused:
        title = _sessions(paused, "is paused", "are paused")
        yield WaitingRow(title, "Its agent waits for a person to resume it.", *_place(paused))
    known = {
        one.pk: standing_of(one).share
        for one in running
        if not one.paused and one.window and one.used_tokens is not None
    }
    fullest = sorted(
        (one for one in running if one.pk in known), key=lambda one: known[one.pk], reverse=True
    )
    near = [one for one in fullest if known[one.pk] >= WARN]
    if near:
        title = _sessions(near, "is near its limit", "are near their limit")
        first = forecasts(near[:1])[near[0].pk]
        fill = f"its next prompt fills {percent(known[near[0].pk])} of its room."
        said = f"{first.sentence} " if first.sentence else ""
        subject = "" if len(near) == 1 else f"In “{_name(near[0])}”: "
        line = f"{subject}{said}{fill[:1].upper() + fill[1:] if said or not subject else fill}"
        yield WaitingRow(title, line, *_place(near))
    low = [found for one in running if (found := low_recall(one))]
    if low:
        those = [one.session for one in low]
        title = _sessions(those, "uses what left its context", "use what left their context")
        subject = "" if len(low) == 1 else f"In “{_name(those[0])}”: "
        worst = tuple((Truncator(f).chars(60), why, was) for f, why, was in low[0].missing)
        yield WaitingRow(title, f"{subject}{low[0].sentence}", *_place(those), worst)


def _place(sessions: list[Session]) -> tuple[str, str]:
    """A button and where it leads: the only session's replay, or all running ones."""
    if len(sessions) == 1:
        return "Open", reverse("replay", args=[sessions[0].pk])
    return "Open", reverse("live")


def _sessions(found: list[Session], one: str, several: str) -> str:
    """One session by its name, several by their number."""
    return (
        f"“{_name(found[0])}” {one}"
        if len(found) == 1
        else _count(len(found), "session", one, several)
    )


def _name(session: Session) -> str:
    return Truncator(str(session)).chars(60)


def _count(many: int, what: str, one: str, several: str) -> str:
    if many == 1:
        return f"1 {what} {one}"
    return f"{many}{'+' if many >= MOST else ''} {what}s {several}"
