"""Append: the only way for messages, calls and recorded revisions into the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Q

from compaction.seen.people import words_of
from sessions.actions.masking.incoming import incoming as incoming_masks
from sessions.actions.record.copied import count_once
from sessions.actions.record.erased import refuse_erased, refuse_gone, refuse_under
from sessions.actions.record.known import as_imported, stored_session, stored_tool_calls
from sessions.actions.record.numbering import Numbering, Taken
from sessions.actions.record.prepare import (
    Count,
    Preparation,
    PreparedMessage,
    ToolCall,
    answered_before,
)
from sessions.actions.record.writing import write
from sessions.importers import records
from sessions.live import hint
from sessions.models import Session, Team

LIVE = "api"
"""`Session.source` of sessions sent by live agents."""


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The result of an append: rows added, messages already known, the lines of those whose
    content is another than stored, and how many calls have their usage in another session."""

    session: Session
    created: bool
    messages: int
    known: int
    changed: bool
    other_lines: list[int]
    copied: int


class ChangedLog(Exception):
    """A log has other messages than are stored under the same keys."""

    def __init__(self, session: Session, lines: Sequence[int]) -> None:
        super().__init__(f"{len(lines)} messages of {session.pk} differ")
        self.session, self.lines = session, lines


def append(
    team: Team,
    incoming: records.Session,
    count: Count,
    *,
    source: str,
    only_same: bool = False,
    replaced: Session | None = None,
) -> AppendResult:
    """Append the given records to a session; all or nothing is stored.

    Known messages are recognized by key, or by the longest prefix of equal digests; a history that
    diverges after a known prefix is recorded as a rewind. Blocks are counted and hashed before the
    transaction begins. With `only_same`, raises ChangedLog if a known message is another now, or if
    the session is of another kind: recorded live, or not. A new session takes the place of one
    that was `replaced`: it has its id, and goes on with its versions.
    """
    incoming, prepared = _prepared(team, incoming, count)
    with transaction.atomic():
        made = _append(team, incoming, prepared, source, demo=False, replaced=replaced)
        is_other_kind = (made.session.source == LIVE) != (source == LIVE)
        if only_same and (made.other_lines or is_other_kind):
            raise ChangedLog(made.session, made.other_lines)
        return made


def append_all(
    team: Team,
    incoming: Sequence[records.Session],
    count: Count,
    *,
    source: str,
    demo: bool = False,
    begin: Callable[[], Mapping[str, Session]] = dict,
) -> list[AppendResult]:
    """Append to several sessions, all or none; new sessions are marked as `demo` if requested.

    `begin` runs first in the transaction, and says which sessions were replaced, by external id.
    """
    prepared = [_prepared(team, one, count) for one in incoming]
    with transaction.atomic():
        replaced = begin()
        return [
            _append(team, one, ready, source, demo=demo, replaced=replaced.get(one.external_id))
            for one, ready in prepared
        ]


def _append(
    team: Team,
    incoming: records.Session,
    prepared: dict[int, PreparedMessage],
    source: str,
    *,
    demo: bool,
    replaced: Session | None = None,
) -> AppendResult:
    incoming, copied = count_once(team, incoming)
    named = _named(team, incoming, prepared)
    session, created = _session(team, incoming, named, source, demo=demo, replaced=replaced)
    new = Numbering(session)
    new.take(incoming.records, prepared)
    if new.fresh:
        # Reset the state kept for appends of a live agent.
        new.run.fold = {}
    write(new)
    changed = created or new.changed
    # Derived values follow in another transaction, and must be requested if that fails.
    session.measured = session.measured and not changed
    if _learn(session, incoming, new.fresh) or changed:
        touch(session)
    lines = new.other_lines
    return AppendResult(session, created, len(new.fresh), new.known, changed, lines, copied)


def _prepared(
    team: Team, incoming: records.Session, count: Count
) -> tuple[records.Session, dict[int, PreparedMessage]]:
    """The session as it is stored, masked if the team wants it, and its messages."""
    masks = incoming_masks(team.pk)
    if masks is not None:
        title, meta = masks.now.value(incoming.title), masks.now.value(incoming.meta)
        incoming = replace(incoming, title=title, meta=meta)
    calls = _answered(team, incoming)
    prepared = Preparation(count, calls, masks=masks).messages(incoming.records)
    stored, _ = stored_session(team, incoming, prepared)
    known = as_imported(stored, prepared).stored if stored else {}
    for index, message in prepared.items():
        if index not in known:
            message.prepare()
    return incoming, prepared


def _answered(team: Team, incoming: records.Session) -> dict[str, ToolCall]:
    """The stored tool calls that the records answer: of traces, which come in parts."""
    asked = answered_before(incoming.records)
    rows = Session.objects.for_team(team).filter(external_id=incoming.external_id)
    session = rows.first() if asked else None
    return {} if session is None else stored_tool_calls(session, asked)


def _named(team: Team, incoming: records.Session, prepared: Mapping[int, PreparedMessage]) -> str:
    """The external id of a session, which one stored under a former id gets, too."""
    stored, named = stored_session(team, incoming, prepared)
    if stored is not None and stored.external_id != named:
        sessions = Session.objects.for_team(team)
        sessions.filter(parent_external_id=stored.external_id).update(parent_external_id=named)
        sessions.filter(pk=stored.pk).update(external_id=named)
    return named


def _session(
    team: Team,
    incoming: records.Session,
    named: str,
    source: str,
    *,
    demo: bool,
    replaced: Session | None,
) -> tuple[Session, bool]:
    its = Session.objects.for_team(team).filter(external_id=named)
    if incoming.parent and not its.exists():
        refuse_under(team, incoming.parent)
    session, created = Session.objects.select_for_update().get_or_create(
        team=team,
        external_id=named,
        defaults={
            "source": source,
            "demo": demo,
            "agent": incoming.agent[:120],
            "model": incoming.model[:120],
            "title": incoming.title[:300],
            "window": incoming.window,
            "meta": incoming.meta,
            "parent_external_id": incoming.parent or "",
            "parent_call": incoming.parent_call or "",
            # Versions must not come again: who compares them would take the new for the old.
            **({"id": replaced.pk, "version": replaced.version} if replaced else {}),
        },
    )
    # Now: it may have been erased while its row was awaited.
    refuse_erased(team, named)
    refuse_gone(session)
    return session, created


def _learn(session: Session, incoming: records.Session, fresh: Sequence[Taken]) -> bool:
    """Update fields that a log may provide later (title, model, window); return whether they
    changed."""
    before = session.title, session.model, session.window, session.meta
    session.title = incoming.title[:300] or session.title or first_words(fresh)
    session.model = incoming.model[:120] or session.model
    session.window = incoming.window or session.window
    session.meta = session.meta | incoming.meta
    return before != (session.title, session.model, session.window, session.meta)


def touch(session: Session) -> None:
    """Save a locked session as its next version, and notify open pages."""
    session.version += 1
    session.save()
    hint(f"session:{session.pk}", session.version)
    hint(f"sessions:{session.team_id}", session.version)


def first_words(fresh: Sequence[Taken]) -> str:
    """The first words of a person as a default title: not a program's text, nor a bare command to
    the client like `/mode`, unless nothing else was said; else those of any user message."""
    texts = [
        (one, block)
        for one in fresh
        for block in one.blocks
        if block.type == "text" and block.preview
    ]
    human = [block.preview for one, block in texts if one.message.record.human]
    spoken = (words for preview in human if (words := words_of(preview)))
    said = (block.preview for _, block in texts if block.kind == "user")
    return next(spoken, "") or next(iter(human), "") or next(said, "")


def link_parents(team: Team, child: Session | None = None) -> list[Session]:
    """Link sub-agents to the sessions that started them, in any order of arrival.

    Returns the parents, because their figures depend on children. `child` restricts this to one
    session and those waiting for it. The spawning call is named by the child, or noted by the
    parent under `spawned`.
    """
    parents: dict[object, Session] = {}
    # As in the condition of its index: SQLite takes another one for "not empty".
    waiting = Session.objects.for_team(team).filter(parent=None, parent_external_id__gt="")
    if child is not None:
        waiting = waiting.filter(Q(pk=child.pk) | Q(parent_external_id=child.external_id))
    for one in waiting:
        parent = Session.objects.for_team(team).filter(external_id=one.parent_external_id).first()
        if parent is None:
            continue
        call = one.parent_call or _spawned(parent, one.external_id)
        spawn = parent.blocks.filter(type="tool_use", tool_call=call).first() if call else None
        one.parent = parent
        one.parent_call = call
        # A live parent's call may not be stored yet: use its current step.
        now = parent.step_count if parent.source == LIVE else None
        one.parent_step = spawn.born - 1 if spawn else now
        one.save(update_fields=["parent", "parent_call", "parent_step"])
        parents[parent.pk] = parent
    return list(parents.values())


def _spawned(parent: Session, child: str) -> str:
    noted = parent.meta.get("spawned")
    call = noted.get(child) if isinstance(noted, dict) else None
    return call if isinstance(call, str) else ""
