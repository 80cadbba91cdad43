"""Deletion of sessions with what only they use, and of blobs that nothing uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet

from sessions.models import (
    Archive,
    Artefact,
    Blob,
    Block,
    ErasedSession,
    Job,
    ManagedContext,
    Opening,
    Replacement,
    Session,
    SkippedRecord,
    Team,
)
from sessions.models.erasure.erasures import keyed_name
from sessions.models.erasure.kept import SessionErased
from sessions.models.record import objects
from sessions.models.record.archives import ArchivedMeanwhile
from sessions.signals import blobs_go

CHUNK = 400
"""Hashes per query: below any database's limit on variables."""

USES: dict[type[Any], tuple[str, str]] = {
    Block: ("sha", "session"),
    Replacement: ("sha", "run__session"),
    Artefact: ("sha", "session"),
    Opening: ("sha", "session"),
    ManagedContext: ("knowledge", "run__session"),
    Archive: ("sha", "session"),
}
"""The tables that point at blobs: the column, and the way to the session."""


def refuse_gone(session: Session) -> None:
    """Refuse to add to a session, whose row is locked, if it is being erased or its content was,
    or if it was archived a moment ago. Raises SessionErased, ArchivedMeanwhile."""
    if session.erasing is not None:
        raise SessionErased(done=False)
    if session.content_erased is not None:
        raise SessionErased(done=True)
    if session.archived is not None:
        raise ArchivedMeanwhile


def refuse_named(teams: Iterable[Team], name: str) -> None:
    """Refuse what is asked of an erased session, by external id or UUID. Raises SessionErased."""
    for team in teams:
        its = Q(name=keyed_name(team.pk, name))
        with suppress(ValueError):
            its |= Q(session=UUID(name))
        found = ErasedSession.objects.filter(its, team=team).exclude(name="").first()
        if found is not None:
            raise SessionErased(done=found.gone is not None)


def refuse_erased(team: Team, external_id: str) -> None:
    """Refuse to store anything for a session that was erased or is being erased. Raises
    SessionErased."""
    refuse_named([team], external_id)


_LOCK = 7_110_225
"""Of advisory locks: this one, then the team."""


def refuse_under(team: Team, parent: str) -> None:
    """Refuse a new sub-agent of a session that was erased or is being erased, or that is itself
    below one; whether or not the parent is stored. Until the transaction ends, an erasure waits
    with its last look for new sub-agents. Take it before locks of sessions. Raises SessionErased.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))", [_LOCK, str(team.pk)]
            )
    above: set[str] = set()
    while parent and parent not in above:
        above.add(parent)
        refuse_named([team], parent)
        row = Session.objects.for_team(team).filter(external_id=parent)
        named = row.only("external_id", "parent_external_id", "erasing", "content_erased").first()
        if named is None:
            return
        if named.erasing is not None or named.content_erased is not None:
            raise SessionErased(done=named.erasing is None)
        parent = named.parent_external_id


def wait_for_sub_agents(team: Team) -> None:
    """Wait until each transaction has ended that passed `refuse_under` before. On SQLite there is
    only one writer anyway."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, str(team.pk)])


def shas_of(sessions: QuerySet[Session]) -> Iterator[str]:
    """The hashes of all blobs that sessions use, perhaps repeated."""
    for model, (column, way) in USES.items():
        rows = model.objects.filter(**{f"{way}__in": sessions}).exclude(**{column: ""})
        yield from rows.values_list(column, flat=True).iterator()
    payloads = Job.objects.filter(kind="compact", payload__session__in=_texts(sessions))
    for sha in payloads.values_list("payload__instructions", flat=True):
        if sha:
            yield sha


def _texts(sessions: QuerySet[Session]) -> list[str]:
    return [str(pk) for pk in sessions.values_list("pk", flat=True)]


def erase(team: Team, sessions: QuerySet[Session]) -> list[str]:
    """Delete sessions with their runs; return the hashes of blobs that they used, for
    `erase_unused`."""
    sessions = sessions.filter(team=team)
    shas = set(shas_of(sessions))
    sessions.delete()
    return sorted(shas)


def erase_unused(team: Team, shas: Iterable[str]) -> None:
    """Delete those of these blobs that nothing of the team uses."""
    Uses(team).erase(shas)


class Uses:
    """Which blobs of a team are in use: one walk through the tables, as they have no index by hash;
    before a blob is deleted, only what is newer is looked at again."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.shas: set[bytes] = set()
        self.objects = 0
        """How many objects lost their rows."""
        self._last = dict.fromkeys((Block, Replacement, Artefact, SkippedRecord), 0)
        archived = Archive.objects.filter(session__team=team)
        self._archived = set(archived.values_list("session", flat=True))
        self._look()

    def __contains__(self, sha: str) -> bool:
        return bytes.fromhex(sha) in self.shas

    def erase(self, shas: Iterable[str]) -> list[str]:
        """Delete the blobs that are not in use, some at a time; return their hashes."""
        erased: list[str] = []
        free = [sha for sha in dict.fromkeys(shas) if sha not in self]
        for start in range(0, len(free), CHUNK):
            erased += self.erase_some(free[start : start + CHUNK])
        return erased

    def erase_some(self, shas: Sequence[str]) -> list[str]:
        """Delete up to CHUNK blobs, in one transaction."""
        with transaction.atomic():
            keep_others_from_using()
            self._look()
            free = [sha for sha in shas if sha not in self]
            blobs_go.send(Team, team=self.team, shas=free)
            blobs = Blob.objects.filter(team=self.team, sha__in=free)
            self.objects += objects.forget(blobs.values_list("object_name", flat=True))
            blobs._raw_delete("default")
        return free

    def unused(self, until: int) -> list[str]:
        """Blobs up to a primary key that nothing uses."""
        rows = Blob.objects.filter(team=self.team, pk__lte=until).values_list("sha", flat=True)
        return [sha for sha in rows.iterator() if sha not in self]

    def _look(self) -> None:
        """Take in what was stored since the last look."""
        for model, (column, way) in USES.items():
            # Where the content is erased, the hash stays, and leads nowhere.
            mine = {f"{way}__team": self.team, f"{way}__content_erased": None}
            rows = model.objects.filter(**mine).exclude(**{column: ""})
            self._add(self._newer(model, rows).values_list(column, flat=True).iterator())
        self._look_at_unpacked()
        skipped = SkippedRecord.objects.filter(file__import_run__team=self.team).exclude(lines=[])
        for lines in self._newer(SkippedRecord, skipped).values_list("lines", flat=True):
            self._add(sha for _, sha in lines)
        waiting = Job.objects.filter(team=self.team, kind="compact")
        self._add(filter(None, waiting.values_list("payload__instructions", flat=True)))

    def _look_at_unpacked(self) -> None:
        """Take in what is unpacked since the first look: such rows have the keys that they had."""
        resting = Archive.objects.filter(session__team=self.team, opening=None)
        opened = sorted(self._archived.difference(resting.values_list("session", flat=True)))
        for start in range(0, len(opened), CHUNK):
            rows = Block.objects.filter(session__in=opened[start : start + CHUNK])
            self._add(rows.values_list("sha", flat=True).iterator())

    def _newer(self, model: type[Any], rows: QuerySet[Any]) -> QuerySet[Any]:
        """Rows that the last look did not see; all where keys do not grow."""
        if model not in self._last:
            return rows
        since, last = self._last[model], model.objects.aggregate(last=Max("pk"))["last"] or 0
        self._last[model] = last
        return rows.filter(pk__gt=since, pk__lte=last)

    def _add(self, shas: Iterable[str]) -> None:
        self.shas.update(map(bytes.fromhex, shas))


def keep_others_from_using() -> None:
    """Until the transaction ends, let no other store a blob: one that finds it stored uses it in
    its own transaction. On SQLite there is only one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {Blob._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")


def blobs_of_skipped(files: Collection[int]) -> list[str]:
    """The hashes of records that imports of these files kept beside the sessions."""
    rows = SkippedRecord.objects.filter(file__in=list(files)).values_list("lines", flat=True)
    return [sha for lines in rows for _, sha in lines]
