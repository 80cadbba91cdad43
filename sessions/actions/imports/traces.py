"""Traces: the calls of a log are stored group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from sessions.actions.archives.unpack import open_named
from sessions.actions.imports.changed import (
    IfChanged,
    ImportedSession,
    append_logs,
    leave_out_erased,
)
from sessions.actions.imports.traced import TracedGroup
from sessions.actions.imports.traced_cut import TraceMoved
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.importers.traces.traced_calls import TracedCall, in_groups
from sessions.importers.traces.traced_contexts import contexts_of
from sessions.models import Archive, Session, Team
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.values import ContentErased

AT_ONCE = 100
"""Calls of a group per transaction (our choice: below a second): others that write wait for it."""


def append_traces(
    team: Team,
    log: records.Log,
    count: Count,
    if_changed: IfChanged,
    done: int,
    end_group: Callable[[int, int], None],
) -> Iterator[ImportedSession]:
    """Store the calls of traces, one group after the other, without those that are `done`.

    `end_group` is called with the groups done and all, when what a group yields was taken.
    """
    # Where spans of a response are in several groups, one with content keeps its usage.
    groups = sorted(in_groups(log.traced or ()).items(), key=_is_silent)
    for number, (name, calls) in enumerate(groups[done:], done + 1):
        yield from _append_group(team, log, name, calls, count, if_changed)
        end_group(number, len(groups))


def _append_group(
    team: Team,
    log: records.Log,
    name: str,
    calls: list[TracedCall],
    count: Count,
    if_changed: IfChanged,
) -> Iterator[ImportedSession]:
    if Archive.objects.filter(session__team=team).exists():
        open_named(team, [name, *_archived(team, name)])
    made: dict[UUID, tuple[int, bool]] = {}
    for some in _in_order(calls):
        for one in _append_some(team, log, name, some, count, if_changed):
            messages, created = made.get(one.session.pk, (0, False))
            made[one.session.pk] = messages + one.messages, created or one.created
    # Later calls may have shown that an earlier one is of another session.
    there = Session.objects.in_bulk(list(made))
    yield from (ImportedSession(there[pk], *said) for pk, said in made.items() if pk in there)


def _in_order(calls: list[TracedCall]) -> Iterator[list[TracedCall]]:
    """Calls of a group by time, some at once. Those of one time stay together: a call that is not
    later than stored ones has these written again."""
    some: list[TracedCall] = []
    for one in sorted(calls, key=lambda one: one.order):
        if len(some) >= AT_ONCE and (one.at or 0) > (some[-1].at or 0):
            yield some
            some = []
        some.append(one)
    yield some


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


def _archived(team: Team, name: str) -> Iterable[str]:
    stored = Session.objects.for_team(team).filter(parent__external_id=name)
    return stored.exclude(archived=None).values_list("external_id", flat=True)
