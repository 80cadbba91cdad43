"""Append: the one way in which messages, calls and recorded revisions enter the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from sessions.actions.ledger import Ledger
from sessions.actions.prepare import Count, Preparation, PreparedMessage
from sessions.importers import records
from sessions.live import hint
from sessions.models import Blob, Session, Team


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
    prepared = Preparation(count).messages(incoming.records)
    with transaction.atomic():
        session, created = _session(team, incoming, source)
        ledger = Ledger(session)
        ledger.take(incoming.records, prepared)
        _store_blobs(team, ledger.fresh)
        ledger.write()
        changed = created or ledger.changed
        # What is derived follows in a transaction of its own, and must be asked for if it did not.
        session.measured = session.measured and not changed
        if _learn(session, incoming) or changed:
            _touch(session)
    return Appended(session, created, len(ledger.fresh), ledger.known, changed)


def _session(team: Team, incoming: records.Session, source: str) -> tuple[Session, bool]:
    session, created = Session.objects.select_for_update().get_or_create(
        team=team,
        external_id=incoming.external_id,
        defaults={
            "source": source,
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


def _store_blobs(team: Team, fresh: Sequence[PreparedMessage]) -> None:
    by_sha = {block.sha: block for message in fresh for block in message.blocks}
    known: set[str] = set()
    shas = list(by_sha)
    for start in range(0, len(shas), 500):
        chunk = shas[start : start + 500]
        known.update(Blob.objects.filter(team=team, sha__in=chunk).values_list("sha", flat=True))
    Blob.objects.bulk_create(
        [Blob.of(team.pk, b.data, b.sha) for b in by_sha.values() if b.sha not in known],
        ignore_conflicts=True,
        batch_size=200,
    )


def _learn(session: Session, incoming: records.Session) -> bool:
    """Take in what a log may learn later (title, model, window); whether that was news."""
    before = session.title, session.model, session.window, session.meta
    session.title = incoming.title[:300] or session.title or _first_words(session)
    session.model = incoming.model[:120] or session.model
    session.window = incoming.window or session.window
    session.meta = session.meta | incoming.meta
    return before != (session.title, session.model, session.window, session.meta)


def _touch(session: Session) -> None:
    """Save a session under its next version, and tell open pages."""
    session.version = F("version") + 1
    session.save()
    session.refresh_from_db(fields=["version"])
    hint(f"session:{session.pk}", session.version)
    hint(f"sessions:{session.team_id}", session.version)


def _first_words(session: Session) -> str:
    """What a person said first, or what was said to the model, where a log gives no title."""
    said = session.blocks.filter(type="text").order_by("position")
    first = said.filter(message__human=True).first() or said.filter(kind="user").first()
    return first.preview if first else ""


def link_parents(team: Team) -> list[Session]:
    """Tie sub-agents to the sessions that started them, in whichever order they came.

    Returns those parents: what is measured of them depends on their children.

    The spawning call is the one that the child names, or that the parent noted under `spawned`.
    """
    parents: dict[object, Session] = {}
    waiting = Session.objects.for_team(team).filter(parent=None).exclude(parent_external_id="")
    for child in waiting:
        parent = Session.objects.for_team(team).filter(external_id=child.parent_external_id).first()
        if parent is None:
            continue
        call = child.parent_call or parent.meta.get("spawned", {}).get(child.external_id, "")
        spawn = parent.blocks.filter(type="tool_use", tool_call=call).first() if call else None
        child.parent = parent
        child.parent_call = call
        child.parent_step = spawn.born - 1 if spawn else None
        child.save(update_fields=["parent", "parent_call", "parent_step"])
        parents[parent.pk] = parent
    return list(parents.values())
