"""Append: the one way in which messages, calls and recorded revisions enter the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from sessions.actions.intake import Intake, Taken
from sessions.actions.known import as_imported
from sessions.actions.prepare import Count, Preparation, PreparedMessage
from sessions.importers import records
from sessions.live import hint
from sessions.models import Session, Team

LIVE = "api"
"""`Session.source` of what agents send themselves."""


@dataclass(frozen=True, slots=True)
class Appended:
    """What an append did: rows added, and messages that were known already."""

    session: Session
    created: bool
    messages: int
    known: int
    changed: bool


def append(team: Team, incoming: records.Session, count: Count, *, source: str) -> Appended:
    """Bring a session up to the records given; all of it or nothing is stored.

    Known messages are recognised by key, or by the longest prefix of equal digests; what diverges
    after a known prefix is recorded as a rewind. Blocks are counted and hashed before the
    transaction begins.
    """
    return append_all(team, [incoming], count, source=source)[0]


def append_all(
    team: Team,
    incoming: Sequence[records.Session],
    count: Count,
    *,
    source: str,
    demo: bool = False,
) -> list[Appended]:
    """The same for several, all of them or none; sessions that this makes are marked as `demo`."""
    prepared = [_prepared(team, one, count) for one in incoming]
    with transaction.atomic():
        return [
            _append(team, one, ready, source, demo=demo)
            for one, ready in zip(incoming, prepared, strict=True)
        ]


def _append(
    team: Team,
    incoming: records.Session,
    prepared: dict[int, PreparedMessage],
    source: str,
    *,
    demo: bool,
) -> Appended:
    session, created = _session(team, incoming, source, demo=demo)
    intake = Intake(session)
    intake.take(incoming.records, prepared)
    if intake.fresh:
        # What a live sender's appends remember of the session is read anew.
        intake.recorded.run.fold = {}
    intake.write()
    changed = created or intake.changed
    # What is derived follows in a transaction of its own, and must be asked for if it did not.
    session.measured = session.measured and not changed
    if _learn(session, incoming, intake.fresh) or changed:
        touch(session)
    return Appended(session, created, len(intake.fresh), intake.known, changed)


def _prepared(team: Team, incoming: records.Session, count: Count) -> dict[int, PreparedMessage]:
    prepared = Preparation(count).messages(incoming.records)
    stored = Session.objects.for_team(team).filter(external_id=incoming.external_id).first()
    known = as_imported(stored, prepared).stored if stored else {}
    for index, message in prepared.items():
        if index not in known:
            message.prepare()
    return prepared


def _session(
    team: Team, incoming: records.Session, source: str, *, demo: bool
) -> tuple[Session, bool]:
    session, created = Session.objects.select_for_update().get_or_create(
        team=team,
        external_id=incoming.external_id,
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
        },
    )
    return session, created


def _learn(session: Session, incoming: records.Session, fresh: Sequence[Taken]) -> bool:
    """Take in what a log may learn later (title, model, window); whether that was news."""
    before = session.title, session.model, session.window, session.meta
    session.title = incoming.title[:300] or session.title or first_words(fresh)
    session.model = incoming.model[:120] or session.model
    session.window = incoming.window or session.window
    session.meta = session.meta | incoming.meta
    return before != (session.title, session.model, session.window, session.meta)


def touch(session: Session) -> None:
    """Save a session whose row is locked under its next version, and tell open pages."""
    session.version += 1
    session.save()
    hint(f"session:{session.pk}", session.version)
    hint(f"sessions:{session.team_id}", session.version)


def first_words(fresh: Sequence[Taken]) -> str:
    """What a person said first, or what was said to the model, where nobody gives a title."""
    texts = [
        (one, block)
        for one in fresh
        for block in one.blocks
        if block.type == "text" and block.preview
    ]
    human = (block.preview for one, block in texts if one.message.record.human)
    said = (block.preview for _, block in texts if block.kind == "user")
    return next(human, "") or next(said, "")


def link_parents(team: Team, child: Session | None = None) -> list[Session]:
    """Tie sub-agents to the sessions that started them, in whichever order they came.

    Returns those parents: what is measured of them depends on their children. With `child` only
    that one is looked at, and those that wait for it.

    The spawning call is the one that the child names, or that the parent noted under `spawned`.
    """
    parents: dict[object, Session] = {}
    waiting = Session.objects.for_team(team).filter(parent=None).exclude(parent_external_id="")
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
        # A live parent's call may not be here yet; it is at that step now.
        now = parent.step_count if parent.source == LIVE else None
        one.parent_step = spawn.born - 1 if spawn else now
        one.save(update_fields=["parent", "parent_call", "parent_step"])
        parents[parent.pk] = parent
    return list(parents.values())


def _spawned(parent: Session, child: str) -> str:
    noted = parent.meta.get("spawned")
    call = noted.get(child) if isinstance(noted, dict) else None
    return call if isinstance(call, str) else ""
