"""Traces: new model calls take their places between those that are stored.

Exporters send spans as they end, some at a time: a sub-agent's before the rest of its parent's.
What is stored is the same as if all had come at once. Calls that follow all others of their
context, as nearly always, are appended; for others the sessions of their group are written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from compaction.context import wire
from sessions.actions.archives.unpack import open_named
from sessions.actions.imports.changed import (
    IfChanged,
    ImportedSession,
    append_logs,
    leave_out_erased,
)
from sessions.actions.imports.traced_store import (
    StoredContext,
    repeats_of,
    reported_of,
    shape_of,
    stored_calls,
    stored_shape,
)
from sessions.actions.record.append import append_all
from sessions.actions.record.erased import erase
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.importers.traces.traced_calls import (
    OPENING,
    REPEATS,
    RESPONSE,
    TOOLS,
    TracedCall,
    TracedContext,
    contexts_of,
    counted_calls,
    in_groups,
    span_in,
)
from sessions.models import Block, Hold, ModelCall, Pin, Review, Session, StepNote, Team
from sessions.models.erasure.kept import SessionErased
from sessions.models.record.values import ContentErased


def append_traces(
    team: Team, log: records.Log, count: Count, if_changed: IfChanged
) -> Iterator[ImportedSession]:
    """Store the calls of traces, one group after the other."""
    for name, calls in in_groups(log.traced or ()).items():
        open_named(team, [name, *_archived(team, name)])
        while True:
            group = _Group(team, log, name)
            if group.root is not None and group.root.source != log.format:
                sessions = [context.session for context in contexts_of(calls)]
                yield from append_logs(team, log, sessions, count, if_changed)
                break
            try:
                yield from group.append(calls, count)
                break
            except _TraceMoved:
                continue
            except (SessionErased, ContentErased):
                leave_out_erased(log)
                break


def _archived(team: Team, name: str) -> Iterable[str]:
    stored = Session.objects.for_team(team).filter(parent__external_id=name)
    return stored.exclude(archived=None).values_list("external_id", flat=True)


class _TraceMoved(Exception):
    """Another import added to the group meanwhile."""


class _Group:
    """The stored sessions of a conversation or trace, by external id; the first has its name."""

    def __init__(self, team: Team, log: records.Log, name: str) -> None:
        self.team, self.log, self.name = team, log, name
        stored = self._stored().order_by(F("started_at").asc(nulls_first=True), "external_id")
        # Calls without content leave no time at their session, which would come first.
        ordered = sorted(stored, key=lambda one: one.external_id != name)
        self.sessions = {one.external_id: one for one in ordered}
        self.root = self.sessions.get(name)
        self._by_pk = {one.pk: one for one in self.sessions.values()}
        named = ModelCall.objects.filter(
            session__in=list(self._by_pk), usage_raw__contains=f'"{RESPONSE}"'
        )
        self._answered = {str(reported_of(one)[RESPONSE]): one for one in named}

    def _stored(self) -> QuerySet[Session]:
        theirs = Q(source=self.log.format) & (
            Q(parent__external_id=self.name) | Q(parent=None, parent_external_id=self.name)
        )
        stored = Session.objects.for_team(self.team)
        return stored.filter(Q(external_id=self.name) | theirs)

    def append(self, calls: list[TracedCall], count: Count) -> list[ImportedSession]:
        """Store what is new in calls. Raises _TraceMoved if the group is another by now."""
        known = self._known({one.id for one in calls} | {one.parent for one in calls})
        new = [one for one in counted_calls(calls) if self._counts(one, known)]
        again = self._repeating(new)
        if repeats := [(again[one.id], one) for one in new if one.id in again and one.has_content]:
            self._keep_repeats(repeats)
            raise _TraceMoved
        new = [one for one in new if one.id not in again]
        if not new:
            known |= {name: self._by_pk[call.session_id] for name, call in again.items()}
            there = dict.fromkeys(known[one.id] for one in calls if one.id in known)
            return [ImportedSession(one, 0, False) for one in there]
        contexts = contexts_of(new, self._contexts(new))
        contexts = [one for one in contexts if one.session.records]
        gone: list[Session] = []
        if self._is_out_of_order(contexts, new):
            worked_on = next((one for one in self.sessions.values() if _is_worked_on(one)), None)
            if worked_on is None:
                contexts, gone = self._rewritten(new)
            else:
                self.log.problems.append(
                    f"Spans of {self.name} came after later ones. Their steps are the last ones, "
                    f"because session {worked_on.external_id} has notes, pins, reviews or a hold."
                )
        return self._write(contexts, gone, count)

    def _known(self, ids: Iterable[str]) -> dict[str, Session]:
        """The sessions of calls, also by the spans that repeat them."""
        rows = ModelCall.objects.filter(call__in=list(ids), session__team=self.team)
        pairs = [
            *rows.values_list("call", "session"),
            *(
                (name, one.session_id)
                for one in self._answered.values()
                for name in repeats_of(one)
            ),
        ]
        return {call: self._by_pk[pk] for call, pk in pairs if pk in self._by_pk}

    def _repeating(self, new: Sequence[TracedCall]) -> dict[str, ModelCall]:
        """The new calls that only repeat stored ones, each with its own; not those that may take
        its place, or show what is within them to be the same call."""
        within = {span_in(_opening(one)) for one in self.sessions.values()}
        found = {}
        for one in new:
            call = self._answered.get(one.response)
            if call is None or span_in(_opening(self._by_pk[call.session_id])):
                continue
            is_later = not one.has_content or (one.at or 0) > (call.at or 0)
            if is_later and within.isdisjoint((one.id, *one.repeats)):
                found[one.id] = call
        return found

    def _keep_repeats(self, repeats: Sequence[tuple[ModelCall, TracedCall]]) -> None:
        """Note spans with content at the calls that they repeat."""
        with transaction.atomic():
            self._expect_unchanged()
            for call, one in repeats:
                raw = reported_of(call)
                raw[REPEATS] = sorted({*repeats_of(call), one.id, *one.repeats})
                call.usage_raw = wire.encode({"raw": raw}).decode("utf-8", "replace")
                call.save(update_fields=["usage_raw"])
            changed = {call.session_id for call, _ in repeats}
            Session.objects.filter(pk__in=changed).update(version=F("version") + 1)

    def _counts(self, one: TracedCall, known: dict[str, Session]) -> bool:
        """Whether a call is not stored, and counts beside those that are (`counted_calls`)."""
        if one.id in known:
            return False
        if not one.is_model:
            return self.root is None or self.root.meta.get(OPENING) == TOOLS
        around = known.get(one.parent)
        return bool(one.said or one.answer or around is None or span_in(_opening(around)))

    def _contexts(self, new: Sequence[TracedCall]) -> dict[str, TracedContext]:
        """The stored contexts, and what they asked for of the results in new prompts."""
        found = {_opening(one): StoredContext(one) for one in self.sessions.values()}
        results = [
            str(block.get("tool_use_id"))
            for one in new
            if one.said and one.said[0].role == "tool"
            for said in one.said
            for block in said.blocks
        ]
        for pk, call in self._blocks("tool_use", results):
            context = next(one for one in found.values() if one.stored.pk == pk)
            context.asked.add(call)
        return dict(found)

    def _blocks(self, form: str, calls: list[str]) -> Iterable[tuple[UUID, str]]:
        if not calls:
            return ()
        pks = [one.pk for one in self.sessions.values()]
        rows = Block.objects.filter(session__in=pks, type=form, tool_call__in=calls)
        return rows.values_list("session", "tool_call")

    def _is_out_of_order(
        self, contexts: Sequence[TracedContext], new: Sequence[TracedCall]
    ) -> bool:
        """Whether new calls are not simply the last ones of their contexts."""
        if self.root is None:
            return False
        if any(one.early for one in contexts) or not all(map(_opening, self.sessions.values())):
            return True
        if any(one.response in self._answered for one in new):
            return True
        if _opening(self.root) == TOOLS and any(one.is_model for one in new):
            return True
        # Calls within a span that now shows to be the same call, or has the context they continue.
        spans = {one.pk: span for one in self.sessions.values() if (span := span_in(_opening(one)))}
        if not spans:
            return False
        asked = [
            str(block.get("id"))
            for one in new
            for said in one.answer
            for block in said.blocks
            if block.get("type") == "tool_use"
        ]
        found = self._blocks("tool_result", asked)
        return any(one.id in spans.values() for one in new) or any(pk in spans for pk, _ in found)

    def _rewritten(self, new: Sequence[TracedCall]) -> tuple[list[TracedContext], list[Session]]:
        """All contexts that are not as stored, and the stored sessions that go for them."""
        stored = [call for one in self.sessions.values() for call in stored_calls(one)]
        contexts, gone = [], dict(self.sessions)
        for context in contexts_of([*stored, *new]):
            there = self.sessions.get(context.session.external_id)
            made = shape_of(context.session.records)
            was = stored_shape(there) if there is not None else None
            if was is not None and was.begins(made):
                del gone[context.session.external_id]
            if was != made:
                contexts.append(context)
        return contexts, list(gone.values())

    def _write(
        self, contexts: Sequence[TracedContext], gone: Sequence[Session], count: Count
    ) -> list[ImportedSession]:
        def begin() -> dict[str, Session]:
            self._expect_unchanged()
            erase(self.team, Session.objects.filter(pk__in=[one.pk for one in gone]))
            return {one.external_id: one for one in gone}

        sessions = [one.session for one in contexts]
        made = append_all(self.team, sessions, count, source=self.log.format, begin=begin)
        were = {one.external_id: one.message_count for one in gone}
        return [
            ImportedSession(
                one.session,
                max(one.messages - were.get(one.session.external_id, 0), 0),
                one.created and one.session.external_id not in were,
            )
            for one in made
        ]

    def _expect_unchanged(self) -> None:
        """Lock the group until the transaction ends. Raises _TraceMoved."""
        if self.root is None:
            # Two imports must not begin the same group.
            Team.objects.select_for_update(no_key=True).get(pk=self.team.pk)
        else:
            Session.objects.select_for_update().filter(pk=self.root.pk).first()
        versions = {one.pk: one.version for one in self.sessions.values()}
        if dict(self._stored().values_list("pk", "version")) != versions:
            raise _TraceMoved


def _opening(session: Session) -> str:
    """What names the context of a session; empty if an earlier release stored it."""
    return str(session.meta.get(OPENING) or "")


def _is_worked_on(session: Session) -> bool:
    """Whether people left something at a session, or hold what the team has."""
    holds = Hold.objects.filter(team=session.team, released=None)
    reviews = Review.objects.filter(item__revision__run__session=session)
    notes = StepNote.objects.filter(session=session)
    return any(one.exists() for one in (holds, reviews, notes, Pin.objects.filter(session=session)))
