"""Stored contexts of traces, to go on from: only what new calls need of them is read."""

from __future__ import annotations

from functools import cached_property

from django.db.models import Exists, OuterRef, QuerySet

from sessions.actions.imports.traced_cut import (
    TraceCut,
    end_of,
    opening_of,
    standing_count,
    standing_keys,
    tools_rows,
)
from sessions.importers import records
from sessions.importers.traces.traced_calls import TracedCall
from sessions.importers.traces.traced_contexts import OPENING, TracedContext, digest_in
from sessions.importers.wire import Block as WireBlock
from sessions.models import Block, Message, Session
from sessions.models.web.statements import (
    Statement,
    StatementAmong,
    given_int,
    given_text,
    given_uuid,
)

_KEYED = StatementAmong(
    lambda keys: Message.objects.filter(
        session_id=given_uuid("session"), seq__lt=given_int("before"), key__in=keys
    ).values_list("key")
)

_OF_CALL = Statement(
    lambda: Block.objects.filter(
        session_id=given_uuid("session"), tool_call=given_text("call")
    ).values_list("position", "type", "tool")
)

AT_ONCE = 8
"""Numbers of a key that are looked up at once, after the first."""


class StoredContext(TracedContext):
    """A stored context up to a cut, the end unless another is given."""

    def __init__(self, stored: Session, cut: TraceCut | None = None) -> None:
        named, parent = stored.external_id, stored.parent_external_id or None
        opening = opening_of(stored) or None
        super().__init__(records.Session(named, parent=parent, meta={OPENING: opening}))
        self.stored, self.cut = stored, cut or end_of(stored)
        self._is_begun = False
        self._knows_tools = False
        self._answered: set[str] = set()

    @property
    def began(self) -> int:
        """When its first call began (ms since the epoch), 0 if unknown."""
        times = self.stored.calls.order_by("step").values_list("at", flat=True)
        return times.first() or 0

    def take(self, one: TracedCall) -> None:
        """Add what is new in a prompt, and the answer."""
        if not self._is_begun:
            self._is_begun = True
            calls = self.stored.calls.filter(step__lt=self.cut.step).order_by("-step")
            self.after = calls.values_list("at", flat=True).first() or 0
            self._unread = standing_count(self.stored, self.cut)
        if one.tools and not self._knows_tools:
            self._knows_tools = True
            row = tools_rows(self.stored, self.cut).first()
            self._tools = digest_in(row.key or "") if row is not None else ""
        super().take(one)

    def _fill(self) -> None:
        if self._unread:
            keys = standing_keys(self.stored, self.cut)
            self._keys[:0], self._digests[:0] = keys, map(digest_in, keys)
            self._unread = 0

    def _unused(self, key: str) -> str:
        if key not in self._used:
            self._used[key] = self._times_stored(key)
        return super()._unused(key)

    def _times_stored(self, key: str) -> int:
        """How often a key is stored: alone, then with numbers from 2 on."""
        found, names = 0, [key]
        while names:
            rows = _KEYED.rows(names, session=self.stored.pk, before=self.cut.seq)
            found += len(rows)
            is_last = len(rows) < len(names)
            names = [] if is_last else [f"{key}.{found + n}" for n in range(1, AT_ONCE + 1)]
        return found

    def _waiting(self, stated: str | None) -> WireBlock | None:
        if not self.cut.position:
            return super()._waiting(stated)
        if not stated:
            return self._stored_waiting(self._asking()) or super()._waiting(stated)
        # Calls with this id come first, stored or not, then those of a tool of this name.
        call = self._stored_named(stated)
        if call is None and not self._unanswered.has_id(stated) and stated in self._stored_tools:
            call = self._stored_waiting(self._asking().filter(tool=stated))
        return call or super()._waiting(stated)

    @cached_property
    def _stored_tools(self) -> set[str]:
        """The tools that were called, read once."""
        called = self.stored.blocks.filter(type="tool_use").order_by()
        return set(called.values_list("tool", flat=True).distinct())

    def _stored_named(self, call: str) -> WireBlock | None:
        """The stored tool call of an id, if nothing answers it."""
        # Cut and sorted here: SQLite would read the whole session by its positions.
        found = _OF_CALL.rows(session=self.stored.pk, call=call)
        rows = [one for one in found if one[0] < self.cut.position]
        is_answered = call in self._answered or any(form == "tool_result" for _, form, _ in rows)
        asked = sorted(tool for tool in rows if tool[1] == "tool_use")
        if is_answered or not asked:
            return None
        self._answered.add(call)
        return {"id": call, "name": asked[0][2]}

    def _asking(self) -> QuerySet[Block]:
        answers = Block.objects.filter(
            session=OuterRef("session"),
            tool_call=OuterRef("tool_call"),
            type="tool_result",
            position__lt=self.cut.position,
        )
        asked = self.stored.blocks.filter(type="tool_use", position__lt=self.cut.position)
        return asked.exclude(Exists(answers)).order_by("position")

    def _stored_waiting(self, asking: QuerySet[Block]) -> WireBlock | None:
        for call, tool in asking.values_list("tool_call", "tool")[: len(self._answered) + 1]:
            if call not in self._answered:
                self._answered.add(call)
                return {"id": call, "name": tool}
        return None
