"""Logs that are not what is stored: changed in the middle, or of a session recorded live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from django.db import transaction

from sessions.actions.accounts import audit
from sessions.actions.archives.unpack import open_named
from sessions.actions.record.append import LIVE, AppendResult, ChangedLog, append
from sessions.actions.record.copied import one_at_a_time
from sessions.actions.record.erased import erase, erase_unused
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.models import Session, Team
from sessions.models.erasure.kept import SessionErased

MOST_SESSIONS = 100
"""Sessions of one id that logs become (our choice): a log is compared with each of them."""
_LONGEST = 300

TOO_LONG = (
    "An id or a number in it is larger than the database takes. Give sessions ids of at most 300 "
    "characters, and calls of at most 200."
)


class IfChanged(StrEnum):
    """What becomes of a session whose log has other messages than are stored."""

    KEEP = "keep"
    """What is stored stays; only what follows it is added, to a live session nothing."""
    REPLACE = "replace"
    """The stored session is deleted, with its runs, reviews and notes; its id stays."""
    NEW = "new"
    """The log becomes a session of its own."""


class ImportedSession(NamedTuple):
    """A stored session of a log, its new messages, and whether it is new."""

    session: Session
    messages: int
    created: bool


def append_logs(
    team: Team,
    log: records.Log,
    sessions: Iterable[records.Session],
    count: Count,
    if_changed: IfChanged,
) -> Iterator[ImportedSession]:
    """Append sessions of a log one after the other, without those that were erased."""
    for one in sessions:
        try:
            yield append_log(team, log, one, count, if_changed)
        except SessionErased:
            leave_out_erased(log)


def leave_out_erased(log: records.Log) -> None:
    """Say, once, that a session of a log was erased. Its id is not named, and nothing is kept of
    records that no importer knows: they may quote it."""
    said = "A session in it was erased, and nothing more is stored for it. It was left out."
    if said not in log.problems:
        log.problems.append(said)
    log.skipped.clear()


def append_log(
    team: Team, log: records.Log, one: records.Session, count: Count, if_changed: IfChanged
) -> ImportedSession:
    """Append a session of a log; what differs from the stored one is said in the log's problems."""
    name, problems = one.external_id, log.problems
    try:
        return _appended(team, log, one, count)
    except ChangedLog as changed:
        stored, said = changed.session, _difference(name, changed)
    if stored.source == LIVE and if_changed == IfChanged.KEEP:
        problems.append(f"{said} The log was left out.")
        return ImportedSession(stored, 0, False)
    for number in range(2, MOST_SESSIONS + 1):
        other = replace(one, external_id=_numbered(name, number), former_ids=())
        is_free = not _is_stored(team, other.external_id)
        if is_free and if_changed != IfChanged.NEW:
            break
        try:
            made = _appended(team, log, other, count)
        except ChangedLog:
            continue
        if is_free:
            problems.append(f"{said} The log is now session {other.external_id}.")
        return made
    else:
        if if_changed == IfChanged.NEW:
            problems.append(
                f"{said} There are {MOST_SESSIONS} sessions of this id already, so the log was "
                "left out. Delete some of them, or import it to replace the first."
            )
            return ImportedSession(stored, 0, False)
    if if_changed == IfChanged.KEEP:
        problems.append(f"{said} What is stored was kept.")
        return _appended(team, log, one, count, only_same=False)
    problems.append(f"{said} The log replaced the stored session.")
    return _replaced(team, log, one, count, stored)


def _numbered(name: str, number: int) -> str:
    end = f".{number}"
    return name[: _LONGEST - len(end)] + end


def _is_stored(team: Team, external_id: str) -> bool:
    return Session.objects.for_team(team).filter(external_id=external_id).exists()


def _replaced(
    team: Team, log: records.Log, one: records.Session, count: Count, stored: Session
) -> ImportedSession:
    """Delete the stored session, and append the log under its ids."""
    with transaction.atomic():
        one_at_a_time(team)
        # An agent that is sending, or another import, goes first or waits.
        stored = Session.objects.select_for_update().filter(pk=stored.pk).first() or stored
        shas = erase(team, Session.objects.filter(pk=stored.pk))
        made = _appended(team, log, one, count, replaced=stored)
        erase_unused(team, shas)
        audit.note(team, audit.COMMAND, "session.replaced", str(stored.pk), source=log.format)
    return made


def _appended(
    team: Team,
    log: records.Log,
    one: records.Session,
    count: Count,
    *,
    only_same: bool = True,
    replaced: Session | None = None,
) -> ImportedSession:
    open_named(team, [one.external_id, *one.former_ids, one.parent])
    made = append(team, one, count, source=log.format, only_same=only_same, replaced=replaced)
    say_copied(log, made)
    return ImportedSession(made.session, made.messages, made.created)


def say_copied(log: records.Log, made: AppendResult) -> None:
    """Say how many calls of a session have their usage in another one."""
    if made.copied:
        log.problems.append(
            f"{made.copied} model calls of {made.session.external_id} are in another session, too, "
            "as after a resume or fork. Their usage counts there only."
        )


def _difference(name: str, changed: ChangedLog) -> str:
    if changed.session.source == LIVE:
        return f"Session {name} was recorded live, from its model calls."
    many, line = len(changed.lines), min(changed.lines)
    said = "1 message differs" if many == 1 else f"{many} messages differ"
    return f"Session {name}: {said} from what is stored, at line {line}{' first' * (many > 1)}."
