"""What the address of the sessions list asks for: search, filters, order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce
from django.http import HttpRequest, QueryDict

from sessions.models import Block, Revision, Run, Session, Team

MILLION = 1_000_000
NEAR_LIMIT = 0.8
"""Share of the window from which a session counts as near its limit."""

QUERY_CHARS = 200


def _big(expression: Combinable | str, default: int) -> Coalesce:
    return Coalesce(
        Cast(expression, BigIntegerField()), Value(default), output_field=BigIntegerField()
    )


SORTS: dict[str, tuple[str, Coalesce]] = {
    "newest": ("Newest", _big("ended_at", 0)),
    "peak": (
        "Peak",
        _big(Cast(F("peak_tokens"), BigIntegerField()) * MILLION / F("window"), -1),
    ),
    "cost": ("Cost", _big("cost_microusd", -1)),
    "steps": ("Steps", _big("step_count", 0)),
}


def _compactions_served() -> QuerySet[Revision]:
    """Revisions of a row's session that compacted what we hand out; logs tell of the others."""
    return Revision.objects.filter(
        run__session=OuterRef("pk"), run__origin=Run.Origin.SERVED, edits__strategy="compact"
    )


HAS_WARM_UP = Q(meta__has_key="warmup")
"""Sessions that importers flag: calls by which clients warm a cache."""

FLAGS: dict[str, tuple[str, str, Callable[[], Q | Exists]]] = {
    "compacted": (
        "◆",
        "Compacted",
        lambda: Q(compaction_count__gt=0) | Q(Exists(_compactions_served())),
    ),
    "breaks": ("✕", "Cache breaks", lambda: Q(break_count__gt=0)),
    "near-limit": (
        "▮",
        "Near the limit",
        lambda: Q(window__isnull=False, peak_tokens__gte=F("window") * NEAR_LIMIT),
    ),
    "errors": ("▲", "Errors", lambda: Q(error_count__gt=0)),
    "sub-agents": (
        "⑂",
        "Sub-agents",
        lambda: Exists(Session.objects.filter(parent=OuterRef("pk"))),
    ),
    "warm-ups": ("○", "Warm-ups", lambda: HAS_WARM_UP),
}

FACETS = ("agent", "model", "source")


@dataclass(frozen=True, slots=True)
class Filters:
    """A reading of the address; what is unknown in it is left out."""

    q: str = ""
    agent: str = ""
    model: str = ""
    source: str = ""
    flags: tuple[str, ...] = ()
    sort: str = "newest"
    parent: UUID | None = None

    @classmethod
    def of(cls, query: QueryDict) -> Filters:
        """What the query string asks for."""
        # PostgreSQL takes no NUL, and no title holds one.
        text = {name: query.get(name, "").replace("\x00", "")[:QUERY_CHARS] for name in FACETS}
        return cls(
            q=query.get("q", "").replace("\x00", "").strip()[:QUERY_CHARS],
            flags=tuple(flag for flag in FLAGS if flag in query.getlist("flag")),
            sort=query.get("sort", "") if query.get("sort") in SORTS else "newest",
            parent=_uuid(query.get("parent", "")),
            **text,
        )

    @property
    def active(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.q or self.agent or self.model or self.source or self.flags or self.parent)

    def address(self, cursor: str = "", **changes: Any) -> str:
        """The list's query string with some of it changed; "?" for the plain list."""
        wanted = replace(self, **changes)
        pairs = [(name, getattr(wanted, name)) for name in ("q", *FACETS)]
        pairs += [("flag", flag) for flag in wanted.flags]
        pairs += [("parent", str(wanted.parent) if wanted.parent else "")]
        pairs += [("sort", wanted.sort if wanted.sort != "newest" else ""), ("cursor", cursor)]
        return "?" + urlencode([(name, value) for name, value in pairs if value])

    def toggled(self, flag: str) -> tuple[str, ...]:
        """The flags with this one switched."""
        return tuple(one for one in FLAGS if (one in self.flags) != (one == flag))

    def rows(self, team: Team) -> QuerySet[Session]:
        """The sessions asked for, annotated with `key` to page by.

        Sub-agents are counted with their parent and warm-ups left out, unless something narrows
        the list: what is looked for may be in one of them.
        """
        rows = Session.objects.for_team(team)
        if not self.active:
            rows = rows.filter(parent=None).filter(~HAS_WARM_UP)
        if self.parent:
            rows = rows.filter(parent=self.parent)
        for facet in FACETS:
            if value := getattr(self, facet):
                rows = rows.filter(**{facet: value})
        for flag in self.flags:
            rows = rows.filter(FLAGS[flag][2]())
        if self.q:
            rows = rows.filter(self._found())
        return rows.annotate(key=SORTS[self.sort][1])

    def _found(self) -> Q:
        found = Q(Exists(_blocks_with(self.q)))
        for field in ("title", "agent", "model", "external_id"):
            found |= Q(**{f"{field}__icontains": self.q})
        return found

    def with_details(self, rows: QuerySet[Session]) -> QuerySet[Session]:
        """Adds what a row shows beside its own columns: `child_count`, `compactions` of the log and
        of what we served, and the block in which the searched text stands as `match`."""
        children = (
            Session.objects.filter(parent=OuterRef("pk"))
            .order_by()
            .values("parent")
            .annotate(n=Count("pk"))
            .values("n")
        )
        served = (
            _compactions_served()
            .order_by()
            .values("run")
            .annotate(n=Count("pk", distinct=True))
            .values("n")
        )
        rows = rows.select_related("parent").annotate(
            child_count=Coalesce(Subquery(children, output_field=IntegerField()), 0),
            compactions=F("compaction_count")
            + Coalesce(Subquery(served, output_field=IntegerField()), 0),
        )
        if not self.q:
            return rows
        first = _blocks_with(self.q).order_by("position").values("pk")[:1]
        return rows.annotate(match=Subquery(first))


def _blocks_with(text: str) -> QuerySet[Block]:
    return Block.objects.filter(session=OuterRef("pk"), preview__icontains=text)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def list_version(request: HttpRequest) -> int:
    """What the socket's topic "sessions" says now: it rises with every session and every change."""
    seen = Session.objects.filter(team__memberships__user=request.user.pk).aggregate(
        versions=Sum("version", default=0), count=Count("pk")
    )
    return int(seen["versions"] + seen["count"])
