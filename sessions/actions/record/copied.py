"""Model calls that several sessions have: a resumed or forked session copies the lines of the
first, and spans of one response may be in several conversations or traces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from sessions.importers import records
from sessions.models import ModelCall, Session, Team
from sessions.models.web.statements import StatementAmong, given_text, given_uuid

_PROVIDERS = re.compile(r"(msg|resp|chatcmpl|gen)[-_].{8,}")
"""Ids that providers give to responses; others are unique in their session only."""

AT_ONCE = 400
"""Ids per query: below any database's limit on variables."""

_LOCK = 71
"""First key of the locks of teams' imports (our choice); the second is of the team."""


def count_once(team: Team, incoming: records.Session) -> tuple[records.Session, int]:
    """Drop the usage of calls that another session of the team has; return how many these are.

    The session that came first keeps it, so sums over sessions count each call once. Use in the
    transaction that stores the calls.
    """
    calls = [one for one in incoming.records if isinstance(one, records.Call)]
    named = {one.call: response for one in calls if (response := _response(one))}
    if not named:
        return incoming, 0
    one_at_a_time(team)
    there = _counted_outside(team, incoming.external_id, set(named.values()))
    copied = {call for call, response in named.items() if response in there}
    if not copied:
        return incoming, 0
    kept = [
        replace(one, usage=None, usage_raw=None)
        if isinstance(one, records.Call) and one.call in copied
        else one
        for one in incoming.records
    ]
    meta = incoming.meta | {"copied_calls": len(copied)}
    return replace(incoming, records=kept, meta=meta), len(copied)


def _response(one: records.Call) -> str:
    """The provider's id of the response; empty if unknown."""
    return one.response or (one.call if one.usage and _PROVIDERS.fullmatch(one.call) else "")


def _counted_outside(team: Team, session: str, responses: Iterable[str]) -> set[str]:
    """Responses whose usage another session has, those of these among them."""
    wanted, there = list(responses), set[str]()
    for named in _OUTSIDE:
        for names in named.rows(wanted, team=team.pk, but=session):
            there.update(filter(None, names))
    return there


def at_once(names: Iterable[str], many: int = AT_ONCE) -> Iterator[list[str]]:
    """Names in parts, for a query each."""
    listed = sorted(names)
    for start in range(0, len(listed), many):
        yield listed[start : start + many]


def named_calls(team: Team, responses: Sequence[str]) -> Iterator[ModelCall]:
    """The team's calls of responses: of logs by their ids, and of traces."""
    for named in _NAMED:
        yield from named.rows(responses, team=team.pk)


def _by_either(
    build: Callable[[Q], QuerySet[ModelCall, Any]],
) -> tuple[StatementAmong, StatementAmong]:
    """Calls by id, and by response: apart, as each way has its index."""
    return (
        StatementAmong(lambda names: build(Q(call__in=names))),
        StatementAmong(lambda names: build(Q(response__in=names))),
    )


def _of_team(sessions: QuerySet[Session] | None = None) -> Exists:
    """Whether a call is of the team, as a condition that does not tempt SQLite to look through all
    its sessions first."""
    theirs = Session.objects.all() if sessions is None else sessions
    return Exists(theirs.filter(pk=OuterRef("session"), team_id=given_uuid("team")))


_NAMED = _by_either(lambda named: ModelCall.objects.filter(named, _of_team()))

_OUTSIDE = _by_either(
    lambda named: (
        ModelCall.objects.filter(
            named, _of_team(Session.objects.exclude(external_id=given_text("but")))
        )
        .exclude(output=None)
        .values_list("call", "response")
    )
)


def one_at_a_time(team: Team) -> None:
    """Until the transaction ends, let no other import of the team store calls. Take it before locks
    of sessions. On SQLite there is only one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Not the team's row: others that have locked a session wait for that.
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, str(team.pk)])
