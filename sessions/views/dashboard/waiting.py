"""What waits for a person, on the dashboard: how many of each, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from compaction.budget.budget import WARN
from sessions.access import allowed
from sessions.actions.live.answer import standing_of
from sessions.actions.reviews.reservations import open_to
from sessions.models import Session, Team
from sessions.models.dashboard.waiting import MOST, waiting_work
from sessions.models.record.demo_data import counts


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """One kind of thing that waits, and the button that leads to it."""

    title: str
    line: str
    button: str
    url: str


def waiting_rows(request: HttpRequest, team: Team) -> list[WaitingRow]:
    """What waits in a team, the most urgent first; empty if nothing does."""
    return list(_rows(request, team))


def _rows(request: HttpRequest, team: Team) -> Iterator[WaitingRow]:
    found = waiting_work(team)
    if found.approvals:
        title = _count(found.approvals, "call", "waits for approval", "wait for approval")
        yield WaitingRow(title, "Over a budget.", "Decide", reverse("budgets"))
    if near := _near_limit(team):
        title = _count(near, "session", "is near its limit", "are near their limit")
        line = f"Running. The next call's prompt fills {100 * WARN:.0f} % of its room or more."
        yield WaitingRow(title, line, "Open", reverse("live"))
    if found.rollout is not None:
        pk, state, share, version = found.rollout
        url = reverse("rollout", args=[pk])
        yield WaitingRow(f"{version} is at {share} %", f"Rollout {state}.", "Open", url)
    if isinstance(request.user, User) and allowed(request, team, "review"):
        many = len(
            open_to(team, request.user)
            .filter(counts(team.pk, "revision__run__session__"))
            .order_by()
            .values_list("pk")[:MOST]
        )
        if many:
            title = _count(many, "compaction", "waits for review", "wait for review")
            yield WaitingRow(
                title, "Summaries beside their originals.", "Review", reverse("reviews")
            )


def _near_limit(team: Team) -> int:
    """How many of the running sessions that moved last are near their limit at their next call."""
    running = Session.objects.for_team(team).live().filter(counts(team.pk), window__gt=0)
    known = running.exclude(used_tokens=None).select_related("policy_version")
    return sum(standing_of(one).share >= WARN for one in known.order_by("-changed")[:MOST])


def _count(many: int, what: str, one: str, several: str) -> str:
    if many == 1:
        return f"1 {what} {one}"
    return f"{many}{'+' if many >= MOST else ''} {what}s {several}"
