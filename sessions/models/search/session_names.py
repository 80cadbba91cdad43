"""Sessions by a part of their titles, ids, agents or models.

A row per session with these names; triggers of the database keep it, so that no code that writes a
session needs to know of it, and what is new is found at once. It is found by its grams: groups of
three characters, on PostgreSQL of two as well. On SQLite an FTS5 table has them, which keeps no
text; on PostgreSQL a GIN index on `contextlab_grams`. What they find must be looked for in the
names: the groups may stand apart. Migrations 0074 and 0075 say how.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.sql.where import WhereNode

from sessions.models.record.sessions import Session
from sessions.models.web.shown import holding, view

GRAMS = "agent_sessions_namegrams"
"""The FTS5 table."""

NAMES = ("title", "external_id", "agent", "model")

FEW = 2_000
"""Sessions up to which the index says which ones hold a text (ours)."""

WALKS = (500, 5_000, 50_000)
"""Sessions that are looked at from the first one on for a text that many hold: PostgreSQL, which
guesses how many, would look at all. Only after the first walk the index is asked, which takes as
long as the text is frequent (ours)."""

MOST_GRAMS = 24
"""Grams of a text that SQLite is asked for."""


class SessionName(models.Model):
    """What a session can be found by, after three marks of its team."""

    session = models.UUIDField(unique=True)
    named = models.TextField()

    def __str__(self) -> str:
        return str(self.session)


def with_name(
    rows: QuerySet[Session],
    teams: Collection[UUID],
    text: str,
    *,
    names: Sequence[str] = NAMES,
    order: Sequence[str] = ("-created", "-pk"),
    limit: int,
) -> QuerySet[Session]:
    """Those of these sessions, all of these teams, that have a text in one of their names, as the
    reader sees them, in an order: at least the first `limit`, and one more if there is one."""
    ordered = rows.order_by(*order)
    for size in WALKS:
        # These met all conditions: with them again, SQLite would look at every session.
        near = Session.objects.filter(pk__in=ordered.values("pk")[:size])
        holders = near.filter(_holds(text, names)).order_by(*order).values_list("pk", flat=True)
        if view() is None and len(keys := list(holders[: limit + 1])) > limit:
            ordered.query.where = WhereNode()
            return ordered.filter(pk__in=keys)
        if size == WALKS[0] and (few := _few(teams, text)) is not None:
            return _seen(ordered.filter(pk__in=few), text, names)
    return _seen(ordered, text, names)


def _seen(rows: QuerySet[Session], text: str, names: Sequence[str]) -> QuerySet[Session]:
    if view() is None:
        return rows.filter(_holds(text, names))
    others = [name for name in names if name != "title"]
    found: QuerySet[Session] = holding(rows, "title", text) | rows.filter(_holds(text, others))
    return found


def _holds(text: str, names: Sequence[str]) -> Q:
    either = Q()
    for name in names:
        either |= Q(**{f"{name}__icontains": text})
    return either


def _few(teams: Collection[UUID], text: str) -> list[UUID] | None:
    """All sessions of these teams that may hold a text; None if there are many."""
    condition, given = _asked([team.hex for team in teams], text)
    # Names of tables are ours; texts are parameters.
    holds = RawSQL(condition, given, output_field=BooleanField())  # noqa: S611
    found = SessionName.objects.filter(holds)
    listed = list(found.values_list("session", flat=True)[: FEW + 1])
    return listed if len(listed) <= FEW else None


def _asked(teams: list[str], text: str) -> tuple[str, list[Any]]:
    """The condition of a row that may hold a text, in SQL, and its parameters."""
    if connection.vendor == "postgresql":
        marked = " OR ".join(["contextlab_grams(named) @> contextlab_grams(%s)"] * len(teams))
        marks = ["\n".join(_marks(team)).upper() for team in teams]
        if len(text) < 2:
            return f"({marked})", marks
        return (
            f"contextlab_grams(named) @> contextlab_grams(upper(%s)) AND ({marked})",
            [text, *marks],
        )
    if len(text) < 3:
        escaped = connection.ops.prep_for_like_query(text)
        return "named LIKE %s ESCAPE '\\'", [f"%{escaped}%"]
    grams = dict.fromkeys(text[at : at + 3] for at in range(len(text) - 2))
    of_teams = " OR ".join(f"({_all(_marks(team))})" for team in teams)
    asked = f"{_all(list(grams)[:MOST_GRAMS])} AND ({of_teams})"
    return f"id IN (SELECT rowid FROM {GRAMS} WHERE {GRAMS} MATCH %s)", [asked]  # noqa: S608


def _marks(team: str) -> list[str]:
    """Grams that few teams share."""
    return [f"\u00a7{team[at : at + 2]}" for at in (0, 2, 4)]


def _all(grams: Sequence[str]) -> str:
    return " AND ".join('"' + gram.replace('"', '""') + '"' for gram in grams)
