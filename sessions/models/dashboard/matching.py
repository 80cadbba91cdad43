"""Which sessions of a team match a filter: for the session list and for simulations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.dashboard.day_totals import DUE
from sessions.models.record.messages import Block
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.web.happened import happened_in
from sessions.models.web.periods import LAST
from sessions.models.web.shown import holding, view

NEAR_LIMIT = 0.8
"""Share of the window from which a session counts as near the limit."""

HAS_WARM_UP = Q(meta__has_key="warmup")
"""Sessions that importers flag as cache warm-ups by the client."""


REAL_RUNS = (Run.Origin.RECORDED, Run.Origin.MANAGED)
"""Origins of runs that are not simulated."""


def compactions_managed() -> QuerySet[Revision]:
    """Compacting revisions of the outer row's managed context."""
    return Revision.objects.filter(
        run__session=OuterRef("pk"), run__origin=Run.Origin.MANAGED, edits__strategy="compact"
    )


COMPACTED = Q(Exists(compactions_managed()))


def blocks_with(text: str) -> QuerySet[Block]:
    """Blocks of the outer row's session whose preview contains the text."""
    return Block.objects.filter(session=OuterRef("pk"), preview__icontains=text)


FLAGS: dict[str, tuple[str, str, Callable[[], Q | Exists]]] = {
    "compacted": (
        "compaction",
        "Compacted",
        # What changed since it was tallied, and only that, is looked up.
        lambda: Q(compaction_count__gt=0) | Q(tallied_compacted=True) | DUE & COMPACTED,
    ),
    "breaks": ("break", "Cache breaks", lambda: Q(break_count__gt=0)),
    "near-limit": (
        "near-limit",
        "Near the limit",
        lambda: Q(window__isnull=False, peak_tokens__gte=F("window") * NEAR_LIMIT),
    ),
    "lost": ("lost", "Lost facts", lambda: Q(assessment__lost_facts__gt=0)),
    "errors": ("error", "Errors", lambda: Q(error_count__gt=0)),
    "sub-agents": (
        "subagent",
        "Sub-agents",
        lambda: Exists(Session.objects.filter(parent=OuterRef("pk"))),
    ),
    "warm-ups": ("warm-up", "Warm-ups", lambda: HAS_WARM_UP),
}
"""By name: kind of mark, label and condition."""

FACETS = ("agent", "model", "source")
"""Columns that the session list can be filtered by."""


def managed_by(policy: str) -> Q:
    """Sessions managed by a policy, given by name or as name@3 for one version."""
    name, _, number = policy.partition("@")
    found = Q(policy_version__policy__name=name)
    if number:
        known = number.isdecimal() and len(number) < 10
        found &= Q(policy_version__number=int(number) if known else 0)
    return found


def matching(
    team: Team,
    *,
    q: str = "",
    flags: Collection[str] = (),
    parent: UUID | None = None,
    facets: Mapping[str, str] | None = None,
    within: tuple[int | None, int | None] = (None, None),
    counted: Q | Exists | None = None,
) -> QuerySet[Session]:
    """The team's sessions that match all filters, unordered.

    Without any filter, sub-agents (counted with their parent) and warm-ups are excluded; with one
    they are searched too. `q` searches titles, names, ids and block previews; `flags` are names
    from FLAGS, `facets` maps names from FACETS to values. `within` is [since, until) in ms;
    `counted` is a further condition, such as those of TILES and `managed_by`. Whether demo
    sessions are among them is for the caller to say (`demo_data.listed`).
    """
    rows: QuerySet[Session] = Session.objects.for_team(team)
    narrowed = {name: value for name, value in (facets or {}).items() if value}
    since, until = within
    timed = since is not None or until is not None
    if not (q or flags or parent or narrowed or timed or counted is not None):
        rows = rows.filter(parent=None).filter(~HAS_WARM_UP)
    if parent:
        rows = rows.filter(parent=parent)
    rows = rows.filter(**narrowed)
    for flag in flags:
        rows = rows.filter(FLAGS[flag][2]())
    if counted is not None:
        rows = rows.filter(counted)
    if timed:
        rows = rows.filter(happened_in([(since or 0, LAST if until is None else until)]))
    if q:
        found = Q(Exists(blocks_with(q))) | Q(title__icontains=q)
        if view() is not None:
            seen = holding(Block.objects.filter(session__team=team), "preview", q)
            titled = holding(Session.objects.for_team(team), "title", q)
            found = Q(pk__in=seen.values("session")) | Q(pk__in=titled.values("pk"))
        for field in ("agent", "model", "external_id"):
            found |= Q(**{f"{field}__icontains": q})
        rows = rows.filter(found)
    return rows
