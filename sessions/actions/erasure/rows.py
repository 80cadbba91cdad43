"""The rows of a session: which tables hold them, and their deletion a stretch at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import models, transaction
from django.db.models import Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from sessions.actions.memory import boards
from sessions.actions.record.erased import CHUNK, blobs_of_skipped
from sessions.models import (
    AcceptedRequests,
    Answer,
    Approval,
    Archive,
    Artefact,
    Assessment,
    Block,
    Board,
    BreakTotals,
    Budget,
    Delivery,
    Edit,
    Entry,
    FactLedger,
    Gathering,
    ImportFile,
    Job,
    ManagedContext,
    MaskedCount,
    Message,
    ModelCall,
    Note,
    Notification,
    Opening,
    Pin,
    RefusedRequest,
    Replacement,
    Reservation,
    Retry,
    Review,
    ReviewItem,
    Revision,
    Run,
    SentRecitation,
    Session,
    Share,
    Simulation,
    SimulationResult,
    StepNote,
    Subscription,
    Team,
    ToolGraph,
    Tuning,
    Use,
)

AT_ONCE = 400
"""Rows per transaction: others that write wait for one of them at most."""

Ways = tuple[str, ...]

TABLES: tuple[tuple[type[models.Model], Ways], ...] = (
    (Review, ("item__revision__run__session",)),
    (ReviewItem, ("revision__run__session",)),
    (FactLedger, ("revision__run__session",)),
    (Entry, ("run__session",)),
    (Edit, ("revision__run__session",)),
    (ManagedContext, ("run__session",)),
    (SentRecitation, ("run__session",)),
    (Replacement, ("run__session",)),
    (Revision, ("run__session",)),
    (Run, ("session",)),
    (Pin, ("session",)),
    (Retry, ("session",)),
    (Block, ("session",)),
    (Message, ("session",)),
    (ModelCall, ("session",)),
    (Artefact, ("session",)),
    (ToolGraph, ("session",)),
    (Gathering, ("session",)),
    (Opening, ("session",)),
    (Subscription, ("session",)),
    (Delivery, ("session", "share__session")),
    (Note, ("session", "share__session", "board__session")),
    (Share, ("session",)),
    (Board, ("session",)),
    (Approval, ("session",)),
    (Reservation, ("session",)),
    (BreakTotals, ("session",)),
    (Assessment, ("session",)),
    (SimulationResult, ("session",)),
    (AcceptedRequests, ("session",)),
    (StepNote, ("session",)),
    (MaskedCount, ("session",)),
    (Archive, ("session",)),
)
"""The tables whose rows belong to a session, and the ways to it; who points before what is pointed
at."""

Deleted = Callable[[str, int], None]
"""Called with a table and the number of its rows that are gone."""


def name_of(model: type[models.Model]) -> str:
    """The name of a table in counts."""
    return str(model._meta.verbose_name)


def said(name: str, many: int) -> str:
    """The name of so many rows."""
    if many == 1 or name.endswith("s"):
        return name
    return re.sub("([^aeiou])y$", r"\1ie", name) + "s"


def rows_of(model: type[models.Model], ways: Ways, pk: UUID) -> QuerySet[Any]:
    """The rows of a session in a table."""
    mine = Q()
    for way in ways:
        mine |= Q(**{way: pk})
    rows: QuerySet[Any] = model._default_manager.filter(mine)
    return rows


def counted(sessions: list[UUID]) -> dict[str, int]:
    """How many rows of each table an erasure of these sessions would delete."""
    found: dict[str, int] = {name_of(Session): len(sessions)}
    for start in range(0, len(sessions), AT_ONCE):
        some = sessions[start : start + AT_ONCE]
        for model, ways in TABLES:
            mine = Q()
            for way in ways:
                mine |= Q(**{f"{way}__in": some})
            many = model._default_manager.filter(mine).count()
            if many:
                found[name_of(model)] = found.get(name_of(model), 0) + many
        for packed in Archive.objects.filter(session__in=some, loose=False).values_list(
            "rows", flat=True
        ):
            for name in ("message", "pin", "retry", "block", "entry"):
                many = found.get(name, 0) + packed.get(name, 0)
                found |= {name: many} if many else {}
    return found


def text_bytes(sessions: list[UUID]) -> int:
    """Bytes of the messages of sessions, also of archived ones, before compression."""
    size = 0
    for start in range(0, len(sessions), CHUNK):
        some = sessions[start : start + CHUNK]
        blocks = Block.objects.filter(session__in=some, session__archived=None)
        packed = Archive.objects.filter(session__in=some)
        size += blocks.aggregate(n=Sum("bytes"))["n"] or 0
        size += packed.aggregate(n=Sum("text_bytes"))["n"] or 0
    return size


def delete(session: Session, deleted: Deleted) -> None:
    """Delete all rows of a session but its own, in short transactions. Safe to repeat."""
    for model, ways in TABLES:
        while many := delete_some(rows_of(model, ways, session.pk)):
            deleted(name_of(model), many)


def delete_some(rows: QuerySet[Any]) -> int:
    """Delete up to AT_ONCE rows that no other row points at; return how many."""
    keys = list(rows.order_by().values_list("pk", flat=True)[:AT_ONCE])
    if keys:
        with transaction.atomic():
            rows.model._default_manager.filter(pk__in=keys)._raw_delete("default")
    return len(keys)


def delete_beside(session: Session, deleted: Deleted) -> list[str]:
    """Delete what names a session without pointing at it, and take its id out of lists; return the
    hashes of blobs that had no other use. Safe to repeat."""
    shas: list[str] = []
    with transaction.atomic():
        boards.forget(session.team, Session.objects.filter(pk=session.pk))
        for rows in _beside(session):
            if many := rows.delete()[0]:
                deleted(name_of(rows.model), many)
        for files in _import_files(session):
            shas += blobs_of_skipped(files)
            deleted(name_of(ImportFile), len(files))
            ImportFile.objects.filter(pk__in=files).delete()
        _leave_out_of_lists(session)
    return shas


def requests_of(session: Session) -> Iterator[QuerySet[Any]]:
    """Stored texts of requests about a session, and of the responses to them."""
    named = Q(session__in=(session.external_id, str(session.pk)))
    yield RefusedRequest.objects.filter(named, team=session.team)
    yield Answer.objects.filter(team=session.team, session=session.pk)


def _beside(session: Session) -> Iterator[QuerySet[Any]]:
    team, name, pk = session.team, session.external_id, str(session.pk)
    yield from requests_of(session)
    about = Q(path__contains=pk) | Q(occurrence__contains=pk) | Q(cause__contains=pk)
    yield Notification.objects.filter(about, team=team)
    yield Use.objects.filter(budget__team=team, budget__scope="session", key__in=(name, pk))
    yield Budget.objects.filter(team=team, scope="session", name__in=(name, pk))
    yield Job.objects.filter(team=team, payload__session=pk)


def _import_files(session: Session) -> Iterator[list[int]]:
    """Files of imports that hold nothing but this session; from others its id is removed."""
    rows = ImportFile.objects.filter(import_run__team=session.team)
    rows = rows.annotate(ids=Cast("found", TextField())).filter(ids__contains=str(session.pk))
    only = []
    for row in rows:
        left = [one for one in row.found if one != str(session.pk)]
        if left or row.sessions > len(row.found):  # a long list names only the first
            said = [one for one in row.problems if session.external_id not in one]
            ImportFile.objects.filter(pk=row.pk).update(found=left, problems=said)
        else:
            only.append(row.pk)
    if only:
        yield only


def _leave_out_of_lists(session: Session) -> None:
    pk = str(session.pk)
    for model, fields in ((Simulation, ("sessions",)), (Tuning, ("sessions", "held"))):
        for field in fields:
            rows = model._default_manager.filter(team=session.team)
            rows = rows.annotate(ids=Cast(field, TextField())).filter(ids__contains=pk)
            for row in rows:
                left = [one for one in getattr(row, field) if one != pk]
                model._default_manager.filter(pk=row.pk).update(**{field: left})


def delivered_outside(sessions: Sequence[UUID]) -> int:
    """How many shares of these sessions were delivered to others: what these received stays part
    of their records."""
    theirs = Delivery.objects.filter(share__session__in=sessions)
    return theirs.exclude(session__in=sessions).count()


def with_sub_agents(team: Team, ids: Iterable[UUID]) -> list[UUID]:
    """Sessions of a team with all sub-agents below them."""
    found = dict.fromkeys(ids)
    level = list(found)
    while level:
        below: list[UUID] = []
        for start in range(0, len(level), CHUNK):
            some = level[start : start + CHUNK]
            children = Session.objects.for_team(team).filter(parent__in=some)
            below += [pk for pk in children.values_list("pk", flat=True) if pk not in found]
        found |= dict.fromkeys(below)
        level = below
    return list(found)
