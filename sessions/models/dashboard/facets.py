"""How many sessions have each value of the session list's filters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec
from django.db.models import Count, Q, QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.day_totals import (
    Range,
    due_days,
    kept_days,
    kept_texts,
    ranges_of,
)
from sessions.models.dashboard.matching import FACETS, HAS_WARM_UP
from sessions.models.record.demo_data import counts
from sessions.models.record.sessions import Session
from sessions.models.web.happened import happened_in

ALL = "all"
"""The name under which all sessions are counted, with the value "all"."""

POLICY = "policy"

_FOLDED = Q(parent__isnull=False) | HAS_WARM_UP
"""Sessions that the list shows only with a filter: sub-agents and warm-ups."""

Counted = dict[str, list[tuple[str, int, int]]]
"""By filter: value, sessions, and how many of these the unfiltered list hides."""


def facets_between(team: Team, ranges: Sequence[Range]) -> Counted:
    """Count the sessions of these times; policies as name@number. Demo sessions beside real ones
    are left out."""
    return _counted(Session.objects.for_team(team).filter(counts(team.pk), happened_in(ranges)))


def _counted(rows: QuerySet[Session]) -> Counted:
    rows = rows.order_by()
    many = {"n": Count("pk"), "folded": Count("pk", filter=_FOLDED)}
    found: Counted = {
        name: [(value, n, folded)
               for value, n, folded in rows.values_list(name).annotate(**many) if value]
        for name in FACETS
    }  # fmt: skip
    version = ("policy_version__policy__name", "policy_version__number")
    pinned = rows.exclude(policy_version=None).values_list(*version).annotate(**many)
    found[POLICY] = [(f"{name}@{number}", n, folded) for name, number, n, folded in pinned]
    whole = rows.aggregate(**many)
    return {**found, ALL: [(ALL, whole["n"], whole["folded"])]}


def facets(team: Team, *, demo: bool = False) -> Counted:
    """Count the sessions of a team, from what is kept and from the rows of the other days; the most
    frequent values first. `demo` adds demo sessions that do not count."""
    due = due_days(team)
    kept = set(kept_days(team)) - due
    days = [msgspec.json.decode(text, type=Counted)
            for _, text in kept_texts(team, kept, "facets", weekly=True)]  # fmt: skip
    if due:
        days.append(facets_between(team, ranges_of(due)))
    if demo:
        days.append(_counted(Session.objects.for_team(team).exclude(counts(team.pk))))
    return added(days)


def added(days: Iterable[Counted]) -> Counted:
    """Add counts up; the most frequent values first."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    hidden: dict[str, Counter[str]] = defaultdict(Counter)
    for one in days:
        for facet, values in one.items():
            for value, many, folded in values:
                sums[facet][value] += many
                hidden[facet][value] += folded
    return {
        facet: sorted(
            ((value, many, hidden[facet][value]) for value, many in values.items()),
            key=lambda row: (-row[1], row[0]),
        )
        for facet, values in sums.items()
    }
