"""Traces: the calls of a log are stored group by group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import UUID

from django.db import DataError

from sessions.actions.archives.unpack import open_named
from sessions.actions.imports.changed import (
    TOO_LONG,
    IfChanged,
    ImportedSession,
    append_logs,
    leave_out_erased,
)
from sessions.actions.imports.traced import TracedGroup
from sessions.actions.imports.traced_cut import TraceMoved
from sessions.actions.imports.traced_known import stored_until
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.importers.traces.traced_calls import TracedCall, by_time, in_groups
from sessions.importers.traces.traced_contexts import contexts_of
from sessions.models import Session, Team
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.values import ContentErased

AT_ONCE = 100
"""Calls of a group per transaction, if they follow what is stored (our choice: below a second):
others that write wait for it."""


def append_traces(
    team: Team, log: records.Log, count: Count, if_changed: IfChanged
) -> Iterator[ImportedSession]:
    """Store the calls of traces, one group after the other. Raises DataError if the values of none
    fit their columns."""
    # Where spans of a response are in several groups, one with content keeps its usage.
    groups = sorted(in_groups(log.traced or ()).items(), key=_is_silent)
    too_long = 0
    for name, calls in groups:
        try:
            yield from _append_group(team, log, name, calls, count, if_changed)
        except DataError:
            too_long += 1
            if too_long == len(groups):
                raise
    if too_long:
        log.problems.append(f"{TOO_LONG} Conversations and traces left out for it: {too_long}.")


def _append_group(
    team: Team,
    log: records.Log,
    name: str,
    calls: list[TracedCall],
    count: Count,
    if_changed: IfChanged,
) -> Iterator[ImportedSession]:
    ordered = sorted(calls, key=lambda one: one.order)
    stored = partial(stored_until, team, log.format, name)
    parts = list(by_time(ordered, lambda one: one.at, AT_ONCE, stored))
    if len(parts) == 1:
        yield from _append_some(team, log, name, calls, count, if_changed)
        return
    made: dict[UUID, tuple[int, bool]] = {}
    for some in parts:
        for one in _append_some(team, log, name, some, count, if_changed):
            messages, created = made.get(one.session.pk, (0, False))
            made[one.session.pk] = messages + one.messages, created or one.created
    # Later calls may have shown that an earlier one is of another session.
    there = Session.objects.in_bulk(list(made))
    yield from (ImportedSession(there[pk], *said) for pk, said in made.items() if pk in there)


def _append_some(
    team: Team,
    log: records.Log,
    name: str,
    calls: list[TracedCall],
    count: Count,
    if_changed: IfChanged,
) -> Iterator[ImportedSession]:
    while True:
        group = TracedGroup(team, log, name, calls)
        archived = [one.external_id for one in group.sessions.values() if one.archived]
        if archived:
            open_named(team, archived)
            continue
        if group.root is not None and group.root.source != log.format:
            sessions = [context.session for context in contexts_of(calls)]
            yield from append_logs(team, log, sessions, count, if_changed)
            return
        try:
            yield from group.append(calls, count)
            return
        except TraceMoved:
            continue
        except (SessionErased, ContentErased):
            leave_out_erased(log)
            return


def _is_silent(group: tuple[str, list[TracedCall]]) -> bool:
    return not any(one.has_content for one in group[1])
