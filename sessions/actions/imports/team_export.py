"""Export of a team: one zip of its sessions, each as it is exported alone, and of its own rows."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from django.db.models import ForeignKey, QuerySet

from sessions.actions.accounts import audit
from sessions.actions.archives.unpack import as_unpacked
from sessions.actions.imports.export import AT_ONCE, export
from sessions.actions.imports.exported import REFERRED, Line, Table, value_of
from sessions.actions.imports.team_tables import BESIDE, POLICIES
from sessions.importers.exported import VERSION as LINES
from sessions.models import Session, Team
from sessions.models.record.values import contents

FORMAT, VERSION = "contextlab-team", 1
MANIFEST, POLICY_ROWS, TEAM_ROWS = "manifest.json", "policies.jsonl", "team.jsonl"
PARTIAL = ".contextlab-team."
PIECE = 1 << 20
IN_MEMORY = 16 * PIECE
"""Bytes of a session; more of it waits in a file."""
TRIES = 5

Numbers = dict[tuple[type, Any], int]


class StillChanging(Exception):
    """An agent adds to a session faster than it can be read."""


def export_team(team: Team, place: Path, actor: audit.Actor) -> int:
    """Write a team into a new file; return how many sessions are in it.

    The file has its name only once it is whole. Sessions whose content is erased are
    not in it. In memory: one batch of rows, and the ids of all sessions.
    Raises FileExistsError, OSError, StillChanging, MissingBlob, DamagedBlob.
    """
    if place.exists():
        raise FileExistsError(17, "This file exists already", str(place))
    with _beside(place) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            many = _write(team, archive)
        file.flush()
        os.fsync(file.fileno())
        audit.note(team, actor, "export.made", "team", sessions=many)
        os.link(file.name, place)
    return many


@contextmanager
def _beside(place: Path) -> Iterator[Any]:
    """A new file in the folder of the place, gone at the end; so is what killed exports left."""
    for left in place.parent.glob(f"{PARTIAL}*"):
        # Locked while its export is at work; or it is another user's, or gone by now.
        with suppress(OSError), left.open("rb") as file:
            flock(file, LOCK_EX | LOCK_NB)
            left.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=PARTIAL) as file:
        flock(file, LOCK_EX)
        yield file


def member(number: int) -> str:
    """The name of a session's file in the zip."""
    return f"sessions/{number:08}.jsonl"


def renamed(value: Any, names: dict[str, str]) -> Any:
    """A value of a column with ids of sessions replaced."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {names.get(key, key): renamed(one, names) for key, one in value.items()}
    return [renamed(one, names) for one in value] if isinstance(value, list) else value


def _write(team: Team, archive: zipfile.ZipFile) -> int:
    found = Session.objects.for_team(team).filter(content_erased=None, erasing=None)
    ids = list(found.order_by("created", "external_id").values_list("pk", flat=True))
    numbers: Numbers = {(Session, pk): number for number, pk in enumerate(ids, 1)}
    hashes = {}
    for number, pk in enumerate(ids, 1):
        with _session(pk) as file:
            pieces = iter(lambda: file.read(PIECE), b"")
            hashes[member(number)] = _add(archive, member(number), pieces)
    for name, tables in ((POLICY_ROWS, POLICIES), (TEAM_ROWS, BESIDE)):
        lines = (line for table in tables for line in _rows(table, team, numbers))
        hashes[name] = _add(archive, name, (_bytes(line) for line in lines))
    said = {"format": FORMAT, "version": VERSION, "lines": LINES, "sessions": len(ids)}
    # Last: a file without it is not whole.
    _add(archive, MANIFEST, [json.dumps(said | {"sha256": hashes}, indent=1).encode()])
    return len(ids)


def _bytes(line: Line) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _add(archive: zipfile.ZipFile, name: str, pieces: Iterable[bytes]) -> str:
    hashed = sha256()
    about = zipfile.ZipInfo(name)  # without a time: an equal team has equal bytes
    about.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(about, "w", force_zip64=True) as file:
        for piece in pieces:
            hashed.update(piece)
            file.write(piece)
    return hashed.hexdigest()


def _session(pk: UUID) -> IO[bytes]:
    """A session as of one moment."""
    for _ in range(TRIES):
        session = Session.objects.select_related("team").get(pk=pk)
        file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (the caller closes it)
        with as_unpacked(session):
            for line in export(session, None, sub_agents=False):
                file.write(_bytes(line))
        if Session.objects.filter(pk=pk, version=session.version).exists():
            file.seek(0)
            return file
        file.close()
    raise StillChanging(
        f"Session {session.external_id} changes faster than it can be read. Pause its agent, and "
        "export again."
    )


def _rows(table: Table, team: Team, numbers: Numbers) -> Iterator[Line]:
    """The lines of a table, without rows of sessions that are not exported."""
    columns = table.columns()
    refers = [one for one in columns if isinstance(one, ForeignKey) and one.name != "parent"]
    names = {str(pk): str(UUID(int=n)) for (model, pk), n in numbers.items() if model is Session}
    rows: QuerySet[Any] = table.model._default_manager.filter(**{table.session: team.pk})
    number = 0
    for row in rows.order_by(*table.order, "pk").iterator(AT_ONCE):
        line = {one.name: renamed(value_of(one, row, numbers), names) for one in columns}
        if any(line[one.name] is None and getattr(row, one.attname) is not None for one in refers):
            continue
        if table.model is Session and (Session, row.pk) not in numbers:
            continue
        for name, one in table.contents:
            sha = getattr(row, name)
            line[name] = sha
            line[f"{name}_content"] = one.read(contents(row.session, [sha])[sha]) if sha else None
        number = numbers.get((table.model, row.pk), number + 1)
        if table.model in REFERRED:
            numbers[table.model, row.pk] = number
        yield {"is": table.name, "id": number, **line}
