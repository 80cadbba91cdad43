"""Checks of the store: bytes against their hashes, numbers without gaps, intervals, references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, connection
from django.db.models import Count, Exists, F, Max, Model, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Coalesce, Lag
from django.utils import timezone

from sessions.actions.accounts import chain
from sessions.models import (
    Archive,
    Artefact,
    AuditEntry,
    Blob,
    Block,
    Edit,
    Entry,
    Job,
    Message,
    ModelCall,
    Replacement,
    Revision,
    Run,
    Session,
    Team,
)
from sessions.models.record import objects
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import content_of

SESSIONS_AT_ONCE = 100
BLOBS_AT_ONCE = 500
BYTES_AT_ONCE = 16 * 1024 * 1024
"""Stored bytes read at once, except for a single larger blob."""
MOST_NAMED = 20
"""Rows named per check and part."""
ABANDONED = timedelta(hours=1)
"""After its lease: a sweep takes seconds."""
OPEN = 2**31 - 1

Rows = QuerySet[Any, Any]


class Damage(NamedTuple):
    """One thing that is wrong: what must hold, and the row for which it does not (ids only)."""

    rule: str
    where: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}"


class Part(NamedTuple):
    """A part of the store that was checked: `after` continues behind it, `rows` were read."""

    stage: str
    after: str
    rows: int
    findings: list[Damage]


def parts(stage: str = "", after: str = "") -> Iterator[Part]:
    """Check the whole store, or what follows a part. Memory does not grow with the store."""
    names = list(STAGES)
    for name in names[names.index(stage) if stage else 0 :]:
        try:
            yield from STAGES[name](after)
        except DatabaseError as error:
            yield Part(name, "", 0, [Damage("the database answers", f"{name}: {error}")])
        after = ""


def total() -> int:
    """The number of rows that `parts` reads, for progress."""
    return Blob.objects.count() + Session.objects.count() + AuditEntry.objects.count()


def _database(after: str) -> Iterator[Part]:  # noqa: ARG001
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA integrity_check({MOST_NAMED})")
        said = [str(row[0]) for row in cursor.fetchall()]
        own = [Damage("SQLite's own check", one) for one in said if one != "ok"]
        yield Part("database", "", 0, own)  # the next statement may fail for the same reason
        cursor.execute("PRAGMA foreign_key_check")
        rows = cursor.fetchmany(MOST_NAMED)
    wrong = [f"{table} {row} to {parent}" for table, row, parent, _ in rows]
    yield Part("database", "", 0, [Damage("a reference leads to a row", one) for one in wrong])


def _blobs(after: str) -> Iterator[Part]:
    last = int(after or 0)
    while True:
        rows = Blob.objects.filter(pk__gt=last).order_by("pk")
        sizes = list(rows.values_list("pk", "size")[:BLOBS_AT_ONCE])
        if not sizes:
            return
        held = 0
        ids: list[int] = []
        for pk, size in sizes:
            if ids and held + size > BYTES_AT_ONCE:
                break
            held, ids = held + size, [*ids, pk]
        last = ids[-1]
        yield Part("blobs", str(last), len(ids), _damages(list(rows.filter(pk__lte=last))))


def _damages(blobs: list[Blob]) -> list[Damage]:
    """What is wrong with blobs, as they are in the store and not in a copy."""
    try:
        placed = objects.read((one.object_name for one in blobs if one.object_name), cached=False)
    except objects.ObjectsAway as error:
        return [Damage("object storage answers", str(error))]
    found = []
    for blob in blobs:
        data = placed.get(blob.object_name) if blob.object_name else blob.data
        rule = "a blob has its object" if data is None else _broken(blob, data)
        found += [Damage(rule, f"blob {blob.sha}")] if rule else []
    return found


def _broken(blob: Blob, data: bytes | memoryview) -> str:
    try:
        size = len(content_of(blob.sha, blob.packed, data))
    except DamagedBlob:
        return "a blob is what its hash says"
    return "" if size == blob.size else "a blob has its size"


def _sessions(after: str) -> Iterator[Part]:
    rows = Session.objects.order_by("pk")
    while ids := list((rows.filter(pk__gt=after) if after else rows).values_list("pk", flat=True)
                      [:SESSIONS_AT_ONCE]):  # fmt: skip
        after = str(ids[-1])
        found: list[Damage] = []
        for rule, query in RULES.items():
            wrong = query(ids)[:MOST_NAMED]
            found += [Damage(rule, _named(row)) for row in wrong]
        yield Part("sessions", after, len(ids), found)


def _named(row: Model) -> str:
    name = row._meta.model_name
    return f"{name} {row.pk}" if isinstance(row, Session) else f"{name} {row.pk} of {_owner(row)}"


def _owner(row: Any) -> str:
    """The session or run that a row belongs to."""
    for field in ("session_id", "run_id", "revision_id"):
        if (owner := getattr(row, field, None)) is not None:
            return f"{field.removesuffix('_id')} {owner}"
    return ""


def _without_blob(rows: Rows, team: str) -> Rows:
    return rows.filter(~Exists(Blob.objects.filter(team=OuterRef(team), sha=OuterRef("sha"))))


def _entries(ids: list[Any]) -> Rows:
    return Entry.objects.filter(run__session__in=ids)


def _twice(ids: list[Any], what: str) -> Rows:
    """Entries that begin before an earlier one of the same block or replacement ends."""
    before = Window(
        Lag(Coalesce("to_step", OPEN)), partition_by=["run", what], order_by=["from_step", "id"]
    )
    entries = _entries(ids).exclude(**{what: None})
    return entries.annotate(before=before).filter(before__gt=F("from_step"))


RULES: dict[str, Callable[[list[Any]], Rows]] = {
    "messages are numbered without a gap": lambda ids: (
        Session.objects.filter(pk__in=ids, archived=None)
        .annotate(rows=Count("messages"), last=Coalesce(Max("messages__seq"), 0))
        .exclude(rows=F("message_count"), last=F("message_count"))
    ),
    "blocks are numbered without a gap": lambda ids: (
        Session.objects.filter(pk__in=ids, archived=None)
        .annotate(rows=Count("blocks"), last=Coalesce(Max("blocks__position"), -1) + 1)
        .exclude(rows=F("block_count"), last=F("block_count"))
    ),
    "a message has its blocks": lambda ids: (
        Message.objects.filter(session__in=ids)
        .annotate(rows=Count("blocks"), last=Coalesce(Max("blocks__index"), -1) + 1)
        .exclude(rows=F("last"))
    ),
    "a block belongs to its message": lambda ids: Block.objects.filter(session__in=ids).exclude(
        message__session=F("session"), message__born=F("born")
    ),
    "a message is born at a step of its session": lambda ids: Message.objects.filter(
        session__in=ids, born__gt=F("session__step_count") + 1
    ),
    "a model call is a step of its session": lambda ids: ModelCall.objects.filter(
        session__in=ids, step__gt=F("session__step_count")
    ),
    "a block has its bytes": lambda ids: _without_blob(
        Block.objects.filter(session__in=ids, session__content_erased=None), "session__team"
    ),
    "a replacement has its bytes": lambda ids: _without_blob(
        Replacement.objects.filter(run__session__in=ids, run__session__content_erased=None),
        "run__session__team",
    ),
    "a prepared text has its bytes": lambda ids: _without_blob(
        Artefact.objects.filter(session__in=ids), "session__team"
    ),
    "an archive has its bytes": lambda ids: _without_blob(
        Archive.objects.filter(session__in=ids), "session__team"
    ),
    "a session has an archive if it is archived": lambda ids: Session.objects.filter(
        pk__in=ids
    ).exclude(Q(archived=None, archive=None) | Q(archived__isnull=False, archive__isnull=False)),
    "revisions are numbered up to the head": lambda ids: (
        Run.objects.filter(session__in=ids)
        .defer(*Run.LARGE)
        .annotate(rows=Count("revisions"), last=Coalesce(Max("revisions__number"), 0))
        .exclude(rows=F("head"), last=F("head"))
    ),
    "a revision has edits, numbered without a gap": lambda ids: (
        Revision.objects.filter(run__session__in=ids)
        .annotate(rows=Count("edits"), last=Coalesce(Max("edits__index"), -1) + 1)
        .exclude(rows=F("last"), rows__gt=0)
    ),
    "an edit's replacement is of its run": lambda ids: (
        Edit.objects.filter(revision__run__session__in=ids)
        .exclude(replacement=None)
        .exclude(replacement__run=F("revision__run"))
    ),
    "an entry is a block or a replacement": lambda ids: _entries(ids).filter(
        Q(block=None, replacement=None) | Q(block__isnull=False, replacement__isnull=False)
    ),
    "an entry stands where its block does": lambda ids: (
        _entries(ids).exclude(block=None).exclude(position=F("block__position"))
    ),
    "an entry ends after it begins, and when it is closed": lambda ids: _entries(ids).filter(
        Q(to_step__lt=F("from_step")) | Q(to_step=None, closed_by__isnull=False)
    ),
    "an entry begins and ends at the steps of its run's revisions": lambda ids: _entries(
        ids
    ).filter(
        Q(opened_by__isnull=False)
        & ~Q(opened_by__revision__run=F("run"), opened_by__revision__step=F("from_step"))
        | Q(closed_by__isnull=False, to_step__isnull=False)
        & ~Q(closed_by__revision__run=F("run"), closed_by__revision__step=F("to_step"))
    ),
    "no block stands twice": lambda ids: _twice(ids, "block"),
    "no replacement stands twice": lambda ids: _twice(ids, "replacement"),
}
"""What must hold, each with a query for the rows of some sessions for which it does not."""


def _jobs(after: str) -> Iterator[Part]:  # noqa: ARG001
    unfinished = Q(state__in=(Job.State.QUEUED, Job.State.RUNNING))
    late = timezone.now() - ABANDONED
    wrong = {
        "a running job has a holder": Q(state=Job.State.RUNNING)
        & (Q(token=None) | Q(lease_until=None) | Q(lease_until__lt=late)),
        "a job that does not run has none": ~Q(state=Job.State.RUNNING) & Q(token__isnull=False),
        "a job has ended when its state says so": (unfinished & Q(finished__isnull=False))
        | (~unfinished & Q(finished=None)),
    }
    found = [
        Damage(rule, f"job {pk}")
        for rule, rows in wrong.items()
        for pk in Job.objects.filter(rows).values_list("pk", flat=True)[:MOST_NAMED]
    ]
    yield Part("jobs", "", 0, found)


def _audit(after: str) -> Iterator[Part]:
    if not after:
        gone = [Damage("a trigger guards the audit log", name) for name in chain.missing_guards()]
        yield Part("audit entries", "", 0, gone)
    teams = Team.objects.order_by("pk")
    for team in teams.filter(pk__gt=after) if after else teams:
        result = chain.check(team)
        broken = isinstance(result, chain.BrokenLink)
        found = [Damage("the audit log is chained", str(result))] if broken else []
        yield Part("audit entries", str(team.pk), result.number, found)


STAGES: dict[str, Callable[[str], Iterator[Part]]] = {
    "database": _database,
    "blobs": _blobs,
    "sessions": _sessions,
    "jobs": _jobs,
    "audit entries": _audit,
}
