"""Traces: the stored sessions of a group, and the calls that those of a request are, repeat, or are
within."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from sessions.actions.imports.traced_cut import opening_of
from sessions.actions.imports.traced_store import repeats_of
from sessions.actions.record.copied import at_once, named_calls
from sessions.importers.traces.traced_calls import TracedCall
from sessions.importers.traces.traced_contexts import span_in
from sessions.models import ModelCall, Session, Team
from sessions.models.web.statements import Statement, given_text, given_uuid


def group_sessions(team: Team, source: str, name: str) -> list[Session]:
    """The stored sessions of a conversation or trace: that of its name, and its sub-agents'."""
    found: list[Session] = _ROOT.rows(team=team.pk, name=name)
    linked = [one for root in found for one in _CHILDREN.rows(root=root.pk, source=source)]
    return found + linked + _UNLINKED.rows(team=team.pk, source=source, name=name)


def stored_until(team: Team, source: str, name: str) -> int:
    """When the last stored call of a group began (ms since the epoch), 0 if none is stored."""
    sessions = group_sessions(team, source, name)
    last = (one.calls.order_by("-step").values_list("at", flat=True).first() for one in sessions)
    return max((at or 0 for at in last), default=0)


_ROOT = Statement(
    lambda: Session.objects.filter(team_id=given_uuid("team"), external_id=given_text("name"))
)

# Apart, as each way has its index; with the team, SQLite would take one of that.
_CHILDREN = Statement(
    lambda: Session.objects.filter(parent_id=given_uuid("root"), source=given_text("source"))
)

_UNLINKED = Statement(
    lambda: Session.objects.filter(
        team_id=given_uuid("team"),
        source=given_text("source"),
        parent=None,
        parent_external_id=given_text("name"),
        parent_external_id__gt="",
    ).exclude(external_id=given_text("name"))
)


class KnownCalls:
    """Stored calls of a group's sessions: `by_span`, also by the spans that repeat them, and
    `by_response`. Read for the calls of a request, however many the group has."""

    def __init__(
        self, team: Team, sessions: Mapping[UUID, Session], calls: Collection[TracedCall]
    ) -> None:
        self._sessions = sessions
        names = {name for one in calls for name in (one.id, one.parent, one.response) if name}
        found = {row.pk: row for row in named_calls(team, sorted(names))}.values()
        mine = [row for row in found if row.session_id in sessions]
        self.by_span = {name: row for row in mine for name in (row.call, *repeats_of(row))}
        self.by_response = {row.response: row for row in mine if row.response}
        within = {one.parent for one in calls if not one.has_content and one.parent}
        for row in self._repeated(within - self.by_span.keys()):
            self.by_span |= dict.fromkeys(repeats_of(row), row)
        self._outside = {
            name: row
            for row in found
            if row.session_id not in sessions and row.output is not None
            for name in (row.call, row.response)
        }

    def _repeated(self, spans: Iterable[str]) -> Iterable[ModelCall]:
        """The calls that name these spans as repeating them."""
        for some in at_once(spans, 50) if self._sessions else ():
            names = reduce(or_, (Q(usage_raw__contains=f'"{span}"') for span in some))
            yield from ModelCall.objects.filter(names, session__in=list(self._sessions))

    def around(self, one: TracedCall) -> ModelCall | None:
        """The call with content that a call without is within."""
        row = None if one.has_content else self.by_span.get(one.parent)
        is_silent = row is not None and span_in(opening_of(self._sessions[row.session_id]))
        return None if is_silent else row

    def has_outside(self, one: TracedCall) -> bool:
        """Whether a call without content has its usage in another conversation or trace."""
        if one.has_content:
            return False
        row = self._outside.get(one.parent)
        is_within = row is not None and not span_in(opening_of(row.session))
        return is_within or bool(one.response) and one.response in self._outside
