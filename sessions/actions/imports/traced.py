"""Traces: new model calls of a group take their places between those that are stored.

Exporters send spans as they end, some at a time: a sub-agent's before the rest of its parent's.
What is stored is the same as if all had come at once. Calls that follow all others of their
context, as nearly always, are appended. For others, the sessions of their group are cut before the
first of them and written again from there on, or whole if what comes before may change, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F

from sessions.actions.imports.changed import (
    ImportedSession,
    say_copied,
)
from sessions.actions.imports.traced_cut import (
    START,
    TraceCut,
    TraceMoved,
    cut_at,
    end_of,
    keeps_title,
    opening_of,
    take_back,
)
from sessions.actions.imports.traced_known import KnownCalls, group_sessions
from sessions.actions.imports.traced_resumed import StoredContext
from sessions.actions.imports.traced_store import (
    shape_of,
    silent_call,
    stored_calls,
    stored_shape,
)
from sessions.actions.record.append import append_all
from sessions.actions.record.calls import update_call
from sessions.actions.record.copied import at_once, count_once, one_at_a_time
from sessions.actions.record.erased import erase, refuse_gone
from sessions.actions.record.prepare import Count
from sessions.importers import records
from sessions.importers.traces.traced_calls import TracedCall, counted_calls
from sessions.importers.traces.traced_contexts import (
    OPENING,
    TOOLS,
    TracedContext,
    contexts_of,
    span_in,
)
from sessions.models import Block, Hold, ModelCall, Pin, Review, Session, StepNote, Team
from sessions.models.record.values import MissingBlob


class TracedGroup:
    """The stored sessions of a conversation or trace, by external id; the first has its name."""

    def __init__(
        self, team: Team, log: records.Log, name: str, calls: Collection[TracedCall]
    ) -> None:
        self.team, self.log, self.name = team, log, name
        # Calls without content leave no time at their session, which would come first.
        ordered = sorted(
            group_sessions(team, log.format, name),
            key=lambda one: (one.external_id != name, *_order(one)),
        )
        self.sessions = {one.external_id: one for one in ordered}
        self.root = self.sessions.get(name)
        self._by_pk = {one.pk: one for one in self.sessions.values()}
        self._known = KnownCalls(team, self._by_pk, calls)

    def append(self, calls: list[TracedCall], count: Count) -> list[ImportedSession]:
        """Store what is new in calls. Raises TraceMoved if the group is another by now."""
        new = [one for one in counted_calls(calls) if self._counts(one)]
        again = self._repeating(new)
        self._complete([(again[one.id], one) for one in new if one.id in again])
        new = [one for one in new if one.id not in again]
        made = self._append_new(new, count) if new else []
        known, written = self._known.by_span | again, {one.session.pk for one in made}
        there = {known[one.id].session_id for one in calls if one.id in known} - written
        # Some of them may have been written again as steps of others.
        rows = Session.objects.filter(pk__in=there) if there else ()
        return made + [ImportedSession(one, 0, False) for one in rows]

    def _append_new(self, new: Sequence[TracedCall], count: Count) -> list[ImportedSession]:
        contexts = contexts_of(new, self._contexts(new, {}))
        contexts = [one for one in contexts if one.session.records]
        places: dict[str, TraceCut] = {}
        changes_all = self._changes_all(new)
        if changes_all or self.root is not None and any(one.early for one in contexts):
            worked_on = next((one for one in self.sessions.values() if _is_worked_on(one)), None)
            if worked_on is None:
                cuts = {} if changes_all else self._cuts(new)
                contexts, places = self._rewritten(new, cuts)
            else:
                self.log.problems.append(
                    f"Spans of {self.name} came after later ones. Their steps are the last ones, "
                    f"because session {worked_on.external_id} has notes, pins, reviews or a hold."
                )
        return self._write(contexts, places, count)

    def _counts(self, one: TracedCall) -> bool:
        """Whether a call is not stored, nor counted elsewhere (see also `counted_calls`)."""
        if one.id in self._known.by_span:
            return False
        if not one.is_model:
            return self.root is None or self.root.meta.get(OPENING) == TOOLS
        return not self._known.has_outside(one)

    def _repeating(self, new: Sequence[TracedCall]) -> dict[str, ModelCall]:
        """The new calls that only repeat stored ones, each with its own; not those that may take
        its place, or show what is within them to be the same call."""
        within = {span_in(opening_of(one)) for one in self.sessions.values()}
        found = {}
        for one in new:
            call = self._known.by_response.get(one.response)
            if call is None:
                call = self._known.around(one)
            elif span_in(opening_of(self._by_pk[call.session_id])):
                continue
            if call is None:
                continue
            is_later = not one.has_content or (one.at or 0) > (call.at or 0)
            if is_later and within.isdisjoint((one.id, *one.repeats)):
                found[one.id] = call
        return found

    def _complete(self, repeats: Sequence[tuple[ModelCall, TracedCall]]) -> None:
        """Store what spans say that repeat stored calls. Raises TraceMoved if that is anything."""
        made: dict[int, tuple[ModelCall, TracedCall]] = {}
        for call, one in repeats:
            made.setdefault(call.pk, (call, silent_call(call, self.name)))[1].absorb(one)
        more = [(call, one) for call, one in made.values() if one != silent_call(call, self.name)]
        if not more:
            return
        with transaction.atomic():
            self._expect_unchanged()
            changed = {call.session_id for call, one in more if self._is_completed(call, one)}
            sessions = Session.objects.filter(pk__in=changed)
            sessions.update(version=F("version") + 1, measured=False)
        if changed:
            raise TraceMoved

    def _is_completed(self, call: ModelCall, one: TracedCall) -> bool:
        """Store what is new about a call; return whether anything is."""
        session = self._by_pk[call.session_id]
        refuse_gone(session)
        stated = records.Session(session.external_id, records=[one.record])
        counted, _ = count_once(self.team, stated)
        before = call.usage_raw
        (record,) = (made for made in counted.records if isinstance(made, records.Call))
        if not update_call(call, record) and call.usage_raw == before:
            return False
        call.save()
        return True

    def _contexts(
        self, new: Sequence[TracedCall], cuts: Mapping[str, TraceCut]
    ) -> dict[str, TracedContext]:
        """The stored contexts up to their cuts, and what they asked for of the results in new
        prompts."""
        found = {
            opening_of(one): StoredContext(one, cuts.get(name))
            for name, one in self.sessions.items()
            if cuts.get(name) != START
        }
        results = [
            str(block.get("tool_use_id"))
            for one in new
            if one.said and one.said[0].role == "tool"
            for said in one.said
            for block in said.blocks
        ]
        for pk, call, position in self._blocks("tool_use", results):
            context = next((one for one in found.values() if one.stored.pk == pk), None)
            if context is not None and position < context.cut.position:
                context.asked.add(call)
        return dict(found)

    def _blocks(self, form: str, calls: list[str]) -> Iterable[tuple[UUID, str, int]]:
        pks = [one.pk for one in self.sessions.values()]
        for some in at_once(set(calls)):
            rows = Block.objects.filter(session__in=pks, type=form, tool_call__in=some)
            yield from rows.values_list("session", "tool_call", "position")

    def _changes_all(self, new: Sequence[TracedCall]) -> bool:
        """Whether new calls may change the contexts of others, at whatever time these began."""
        if self.root is None:
            return False
        if not all(map(opening_of, self.sessions.values())):
            return True
        if any(one.response in self._known.by_response for one in new):
            return True
        if opening_of(self.root) == TOOLS and any(one.is_model for one in new):
            return True
        # Calls within a span that now shows to be the same call, or has the context they continue.
        spans = {
            one.pk: span for one in self.sessions.values() if (span := span_in(opening_of(one)))
        }
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
        return any(one.id in spans.values() for one in new) or any(pk in spans for pk, *_ in found)

    def _cuts(self, new: Sequence[TracedCall]) -> dict[str, TraceCut]:
        """Where stored sessions are cut so that new calls come before the rest, by external id;
        none if all must be written again."""
        since = min(one.at or 0 for one in new)
        cuts: dict[str, TraceCut] = {}
        if since <= 0:  # calls of unknown times come first, in an order of their own
            return cuts
        for name, one in self.sessions.items():
            cut = cut_at(one, since)
            is_begun = cut is not None and (cut != START or name != self.name)
            if cut is None or not is_begun or cut.step > 1 and not keeps_title(one, cut):
                return {}
            cuts[name] = cut
        return cuts

    def _rewritten(
        self, new: Sequence[TracedCall], cuts: Mapping[str, TraceCut]
    ) -> tuple[list[TracedContext], dict[str, TraceCut]]:
        """The contexts that are not as stored after the cuts, or at all without any; and where the
        stored sessions are cut for them. Raises TraceMoved."""
        stored = [(one, cuts.get(name, START)) for name, one in self.sessions.items()]
        try:
            calls = [
                call
                for one, cut in stored
                if cut.step <= one.step_count
                for call in stored_calls(one, cut)
            ]
        except MissingBlob:
            if self._has_moved():  # while it was read
                raise TraceMoved from None
            raise
        calls += new
        contexts = []
        places = {one.external_id: cut for one, cut in stored if cut != end_of(one)}
        for context in contexts_of(calls, self._contexts(calls, cuts) if cuts else None):
            name = context.session.external_id
            there = self.sessions.get(name)
            made = shape_of(context.session.records)
            was = stored_shape(there, cuts.get(name, START)) if there is not None else None
            if was is not None and was.begins(made):
                places.pop(name, None)
            if made.is_empty and places.get(name, START) != START:
                return self._rewritten(new, {})  # its last calls are of another context now
            if was != made and not made.is_empty:
                contexts.append(context)
        return contexts, places

    def _write(
        self, contexts: Sequence[TracedContext], places: Mapping[str, TraceCut], count: Count
    ) -> list[ImportedSession]:
        """Append to contexts, in a transaction in that stored sessions are cut first."""
        gone = {name: self.sessions[name] for name, cut in places.items() if cut == START}

        def begin() -> dict[str, Session]:
            self._expect_unchanged()
            if gone:
                erase(self.team, Session.objects.filter(pk__in=[one.pk for one in gone.values()]))
            for name, cut in places.items():
                if cut != START:
                    take_back(self.sessions[name], cut)
            return gone

        sessions = [one.session for one in contexts]
        made = append_all(self.team, sessions, count, source=self.log.format, begin=begin)
        for result in made:
            say_copied(self.log, result)
        were = {
            name: self.sessions[name].message_count + 1 - cut.seq for name, cut in places.items()
        }
        return [
            ImportedSession(
                one.session,
                max(one.messages - were.get(one.session.external_id, 0), 0),
                one.created and one.session.external_id not in gone,
            )
            for one in made
        ]

    def _expect_unchanged(self) -> None:
        """Lock the group until the transaction ends. Raises TraceMoved."""
        one_at_a_time(self.team)
        if self.root is not None:
            Session.objects.select_for_update().filter(pk=self.root.pk).first()
        if self._has_moved():
            raise TraceMoved

    def _has_moved(self) -> bool:
        versions = {one.pk: one.version for one in self.sessions.values()}
        stored = group_sessions(self.team, self.log.format, self.name)
        return {one.pk: one.version for one in stored} != versions


def _order(session: Session) -> tuple[int, str]:
    return session.started_at or 0, session.external_id


def _is_worked_on(session: Session) -> bool:
    """Whether people left something at a session, or hold what the team has."""
    holds = Hold.objects.filter(team=session.team, released=None)
    reviews = Review.objects.filter(item__revision__run__session=session)
    notes = StepNote.objects.filter(session=session)
    return any(one.exists() for one in (holds, reviews, notes, Pin.objects.filter(session=session)))
