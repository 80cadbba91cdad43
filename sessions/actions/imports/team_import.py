"""Import of a team's export into an empty team: all of it, or nothing."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from sessions.actions.accounts import audit
from sessions.actions.assessments import assess
from sessions.actions.imports.exported import REFERRED, Line, Table, read_value
from sessions.actions.imports.imports import measure_restored
from sessions.actions.imports.restored import BATCH, contents_of, insert, restore
from sessions.actions.imports.team_export import (
    FORMAT,
    MANIFEST,
    PIECE,
    POLICY_ROWS,
    TEAM_ROWS,
    VERSION,
    member,
    renamed,
)
from sessions.actions.imports.team_tables import TEAM_TABLES
from sessions.actions.search import indexing
from sessions.importers.decoded import NotALog, Unreadable, exact
from sessions.importers.exported import VERSION as LINES
from sessions.importers.exported import read
from sessions.models import Policy, Session, Simulation, Team, Tuning
from sessions.models.record.blobs import keep

_DAMAGED = "The file is damaged: {}. Nothing was imported. Export the team again."


class TeamNotEmpty(Exception):
    """The team has something already; a sentence says what."""


def is_team(path: Path) -> bool:
    """Whether a file is the export of a team, perhaps a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            return POLICY_ROWS in names and TEAM_ROWS in names
    except (zipfile.BadZipFile, OSError):
        return False


def import_team(team: Team, path: Path, actor: audit.Actor) -> list[str]:
    """Store what an export of a team holds in an empty team, in one transaction; return what a
    person should know.

    In memory: the largest session, and the ids of all. Raises NotALog for a file that is damaged
    or does not fit together, TeamNotEmpty, OSError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sessions = _checked(archive)
            with transaction.atomic():
                problems = _Importing(team, archive).all(sessions)
                audit.note(team, actor, "import.asked", "team", sessions=sessions)
    except (zipfile.BadZipFile, EOFError, zlib.error):
        raise NotALog(_DAMAGED.format("it is not a whole zip")) from None
    except DatabaseError as error:
        raise NotALog(f"The export does not fit together: {error}. Export it again.") from None
    assess.ask_all(team)
    indexing.ask(team)
    return problems


def _checked(archive: zipfile.ZipFile) -> int:
    """The number of sessions, once every hash is right. Raises NotALog."""
    try:
        said = exact(archive.read(MANIFEST))
        hashes, sessions = said["sha256"], said["sessions"]
        known = said["format"] == FORMAT and (said["version"], said["lines"]) == (VERSION, LINES)
    except (Unreadable, KeyError, TypeError):
        raise NotALog(_DAMAGED.format("its manifest cannot be read")) from None
    if not known:
        raise NotALog(
            "The export is of another version of ContextLab. Export it again with this one."
        )
    named = {*map(member, range(1, sessions + 1)), POLICY_ROWS, TEAM_ROWS}
    if set(hashes) != named or sorted(archive.namelist()) != sorted({*named, MANIFEST}):
        raise NotALog(_DAMAGED.format("its files are not those of its manifest"))
    for name, wanted in hashes.items():
        hashed = sha256()
        with archive.open(name) as file:
            while piece := file.read(PIECE):
                hashed.update(piece)
        if hashed.hexdigest() != wanted:
            raise NotALog(_DAMAGED.format(f"{name} is not what its SHA-256 says"))
    return int(sessions)


class _Importing:
    def __init__(self, team: Team, archive: zipfile.ZipFile) -> None:
        self.team, self.archive = team, archive
        self.rows: dict[tuple[type, Any], Any] = {}
        self.names: dict[str, str] = {}

    def all(self, sessions: int) -> list[str]:
        self._empty()
        self._store(POLICY_ROWS)
        problems: dict[str, None] = {}
        for number in range(1, sessions + 1):
            problems |= dict.fromkeys(self._session(number))
        self._store(TEAM_ROWS)
        for pk in list(self.names.values()):
            measure_restored(Session.objects.get(pk=pk))
        return list(problems)

    def _empty(self) -> None:
        """Lock the team and remove its presets, which a team gets by itself."""
        Team.objects.select_for_update(no_key=True).get(pk=self.team.pk)
        ways = {table.model: table.session for table in TEAM_TABLES.values()}
        ways |= {Simulation: "team", Tuning: "team"}
        for model, way in ways.items():
            found = model._default_manager.filter(**{way: self.team.pk})
            if model is Policy:
                found = found.filter(preset=False)
            if way in ("team", "budget__team") and found.exists():
                what = model._meta.verbose_name_plural
                raise TeamNotEmpty(
                    f"Team {self.team} is not empty: it has {what}. Import into a new team."
                )
        Team.objects.filter(pk=self.team.pk).update(active=None)
        Policy.objects.filter(team=self.team).delete()

    def _session(self, number: int) -> list[str]:
        name = member(number)
        try:
            log = read(self.archive.read(name))
            restored = restore(self.team, log.rows or [], trusted=True)
        except NotALog as error:
            raise NotALog(f"{name}: {error} Nothing was imported.") from None
        if len(restored.new) != 1:
            raise NotALog(_DAMAGED.format(f"{name} is not one session of its own"))
        pk = restored.sessions[0].pk
        self.rows[Session, number] = pk
        self.names[str(UUID(int=number))] = str(pk)
        return restored.problems

    def _store(self, name: str) -> None:
        for table_name, lines in groupby(self._lines(name), itemgetter("is")):
            table = TEAM_TABLES.get(str(table_name))
            if table is None:
                raise NotALog(_DAMAGED.format(f"{name} has rows of an unknown table"))
            while batch := [line for _, line in zip(range(BATCH), lines, strict=False)]:
                self._batch(table, name, batch)

    def _lines(self, name: str) -> Iterator[Line]:
        with self.archive.open(name) as file:
            for number, data in enumerate(file, 1):
                try:
                    line = exact(data)
                except Unreadable:
                    line = None
                if not (isinstance(line, dict) and isinstance(line.get("id"), int)):
                    raise NotALog(_DAMAGED.format(f"{name}, line {number}, is not a row"))
                yield line

    def _batch(self, table: Table, name: str, lines: list[Line]) -> None:
        made = [self._row(table, name, line) for line in lines]
        if table.model is Session or table.model is Team:
            columns = [one.name for one in table.columns()]
            type(made[0])._default_manager.bulk_update(made, columns)
            return
        for row, line in zip(made, lines, strict=True):
            blobs = dict(contents_of(table, row, line, line["id"], self.team))
            keep(self.team.pk, blobs.values())
        insert(made)
        if table.model in REFERRED:
            for row, line in zip(made, lines, strict=True):
                self.rows[table.model, line["id"]] = row.pk

    def _row(self, table: Table, name: str, line: Line) -> Any:
        row: Any = table.model()
        if table.model is Team:
            row = self.team
        elif table.model is Session:
            row = Session(pk=self.rows.get((Session, line["id"])))
        elif "team" in {one.name for one in table.model._meta.concrete_fields}:
            row.team = self.team
        for column in table.columns():
            where = f"{name}, {table.name} {line['id']}, {column.name}"
            try:
                value = renamed(line.get(column.name), self.names)
                setattr(row, column.attname, read_value(column, value, self.rows))
            except (ValidationError, ValueError, OverflowError) as error:
                said = error.messages[0] if isinstance(error, ValidationError) else error
                raise NotALog(f"{where}: {said}. Nothing was imported.") from None
        return row
