"""Objects: move content between rows and object storage, and remove what no row names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import Length

from sessions.actions.record.erased import keep_others_from_using
from sessions.models import Blob, ImportFile, RemovedObject, Team
from sessions.models.record import objects
from sessions.models.record.blobs import OBJECT_FROM, DamagedBlob
from sessions.models.record.objects import BLOBS, UPLOADS
from sessions.models.record.values import content_of
from sessions.signals import blobs_go

AT_ONCE = 64
"""Blobs that are moved in one transaction."""
SWEPT_FROM, SWEPT_UNTIL = timedelta(days=9), timedelta(days=1)
"""Ages of objects that a sweep looks at: no write takes a day, and older ones were swept before."""

Progress = Callable[[int, int], None]
"""Called with blobs done and total."""


class Moved(NamedTuple):
    """What a move did: blobs, uploads that wait, and blobs whose content is missing or damaged,
    which stayed where they were."""

    blobs: int
    uploads: int
    left: list[str]


def places() -> dict[str, int]:
    """Blobs and bytes as stored, in the database and in object storage. Reads all rows."""
    away = ~Q(object_name="")
    row = Blob.objects.aggregate(
        database_blobs=Count("pk", filter=~away),
        database_bytes=Sum(Length("data")),
        object_blobs=Count("pk", filter=away),
        object_bytes=Sum("object_bytes"),
    )
    sizes = {name: value or 0 for name, value in row.items()}
    return sizes | {"to_remove": RemovedObject.objects.count()}


def move_to_objects(progress: Progress) -> Moved:
    """Move large content and waiting uploads into object storage, while servers go on. Stopped at
    any point, the next run continues. Raises ObjectsAway."""
    uploads = _send_files()
    rows = Blob.objects.annotate(length=Length("data")).filter(length__gte=OBJECT_FROM)
    return _move(rows.filter(object_name=""), uploads, progress, _sent)


def move_to_database(progress: Progress) -> Moved:
    """Move all content and waiting uploads out of object storage; like `move_to_objects`."""
    uploads = 0
    for name in objects.listed(UPLOADS):
        path = Path(settings.DATA_DIR) / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with objects.as_file(name) as copy:
            path.write_bytes(copy.read_bytes())
        objects.remove([name])
        uploads += 1
    return _move(Blob.objects.exclude(object_name=""), uploads, progress, _fetched)


def _send_files() -> int:
    """Send objects that are files in the data directory: uploads, and blobs of a restored
    backup."""
    root, sent = Path(settings.DATA_DIR), 0
    for folder in (UPLOADS, BLOBS):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    name = str(path.relative_to(root))
                    objects.put_chunks(name, iter(lambda: file.read(1 << 20), b""))
                path.unlink()
                sent += folder == UPLOADS
    return sent


Changed = Callable[[list[Blob]], tuple[list[Blob], list[str]]]
"""Blobs as they will be stored, and the hashes of those that cannot be."""


def _move(rows: object, uploads: int, progress: Progress, changed: Changed) -> Moved:
    total, done, last, left = rows.count(), 0, 0, list[str]()  # type: ignore[attr-defined]
    while True:
        some = list(rows.filter(pk__gt=last).order_by("pk")[:AT_ONCE])  # type: ignore[attr-defined]
        if not some:
            objects.remove_forgotten()
            return Moved(done, uploads, left)
        last = some[-1].pk
        made, broken = changed(some)
        left += broken
        done += _replace({one.pk: one for one in some}, made)
        objects.remove_forgotten()
        progress(done + len(left), total)


def _sent(some: list[Blob]) -> tuple[list[Blob], list[str]]:
    made = [
        Blob(
            team_id=one.team_id,
            sha=one.sha,
            size=one.size,
            packed=one.packed,
            data=b"",
            object_name=objects.blob_name(one.team_id, one.sha),
            object_bytes=len(one.data),
        )
        for one in some
        if _is_whole(one, one.data)
    ]
    data = {(one.team_id, one.sha): bytes(one.data) for one in some}
    objects.put({one.object_name: data[one.team_id, one.sha] for one in made})
    return made, _others(some, made)


def _fetched(some: list[Blob]) -> tuple[list[Blob], list[str]]:
    found = objects.read((one.object_name for one in some), cached=False)
    made = [
        Blob(team_id=one.team_id, sha=one.sha, size=one.size, packed=one.packed, data=data)
        for one in some
        if (data := found.get(one.object_name)) is not None and _is_whole(one, data)
    ]
    return made, _others(some, made)


def _is_whole(blob: Blob, data: bytes | memoryview) -> bool:
    try:
        return len(content_of(blob.sha, blob.packed, data)) == blob.size
    except DamagedBlob:
        return False


def _others(some: Sequence[Blob], made: Sequence[Blob]) -> list[str]:
    known = {(one.team_id, one.sha) for one in made}
    return [one.sha for one in some if (one.team_id, one.sha) not in known]


def _replace(old: dict[int, Blob], made: list[Blob]) -> int:
    """Put rows in place of others, which are immutable; those that were erased meanwhile stay
    so."""
    with transaction.atomic():
        keep_others_from_using()
        there = Blob.objects.filter(pk__in=old).values_list("team", "sha", "object_name")
        names = {(team, sha): name for team, sha, name in there}
        fits = [one for one in made if (one.team_id, one.sha) in names]
        gone = [one for one in made if (one.team_id, one.sha) not in names]
        for team in Team.objects.filter(pk__in={one.team_id for one in fits}):
            shas = [one.sha for one in fits if one.team_id == team.pk]
            blobs_go.send(Team, team=team, shas=shas)
            Blob.objects.filter(team=team, sha__in=shas)._raw_delete("default")
        objects.forget(names[one.team_id, one.sha] for one in fits)
        objects.forget(one.object_name for one in gone)
        Blob.objects.bulk_create(fits)
    return len(fits)


def sweep(now: datetime) -> int:
    """Remove objects that got no row, because their writer died, and uploads that were read; return
    how many. Looks at those of some days. Raises ObjectsAway."""
    lost = {name for name in objects.listed(UPLOADS) if _is_old(name, now)}
    waiting = ImportFile.objects.filter(state=ImportFile.State.WAITING)
    lost -= objects.uploaded(waiting.exclude(stored="").values_list("stored", flat=True))
    removed = objects.forget(lost)
    # Files in the data directory hold uploads only: other content is rows.
    hour = now - (SWEPT_FROM if objects.is_shared() else SWEPT_UNTIL)
    while hour < now - SWEPT_UNTIL:
        for names in _parts(objects.listed(f"{BLOBS}{hour.astimezone(UTC):%Y-%m-%d/%H}/")):
            removed += objects.forget(set(names) - _named(names))
        hour += timedelta(hours=1)
    objects.remove_forgotten()
    return removed


def _is_old(name: str, now: datetime) -> bool:
    return objects.storage().get_modified_time(name) < now - SWEPT_UNTIL


def _parts(names: list[str]) -> Iterator[list[str]]:
    return (names[start : start + 400] for start in range(0, len(names), 400))


def _named(names: list[str]) -> set[str]:
    """Those of these objects that rows name."""
    by_team: dict[UUID, list[str]] = {}
    for name in names:
        team, sha, _ = name.rpartition("/")[2].split("-")
        by_team.setdefault(UUID(team), []).append(sha)
    found: set[str] = set()
    for team_id, shas in by_team.items():
        rows = Blob.objects.filter(team=team_id, sha__in=shas)
        found |= set(rows.values_list("object_name", flat=True))
    return found
