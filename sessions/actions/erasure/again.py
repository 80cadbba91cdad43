"""Erase again what a restored backup brought back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions.actions.accounts import audit
from sessions.actions.erasure import people, receipts
from sessions.actions.erasure.erase import carry_out
from sessions.actions.erasure.receipts import KeptReceipt
from sessions.actions.record.erased import CHUNK
from sessions.models import Board, ErasedSession, Erasure, Membership, Session, Team


class ErasedAgain(NamedTuple):
    """What `again` did: receipts read, sessions erased again, and lines that are no receipts."""

    receipts: int
    sessions: int
    unreadable: int


def again(path: Path) -> ErasedAgain:
    """Erase everything again that the receipts in a file name. Call it after a restore, before the
    server starts; safe to repeat. Holds do not stop it, because the data was erased before.

    A missing file is an empty one. Ids and external ids are refused again, too.
    """
    read = erased = unreadable = 0
    for line in receipts.kept_lines(path):
        try:
            kept = receipts.parse_line(line)
        except receipts.NoReceipt:
            unreadable += 1  # a crash can leave half a line
            continue
        read += 1
        erased += _again(kept)
    return ErasedAgain(read, erased, unreadable)


def _again(kept: KeptReceipt) -> int:
    receipt = kept.receipt
    team = Team.objects.filter(pk=receipt["team"]["id"]).first()
    if team is None:
        return 0
    with transaction.atomic():
        made = _remembered(team, kept)
        left = _left(team, receipt)
        back = {*left, *receipts.sub_agents_left(team, receipt)}
        beside = people.delete_all(_beside(team, receipt))
        if not (back or beside or made.finished is None or _is_person_back(made)):
            return 0
        ErasedSession.objects.filter(erasure=made, session__in=left).update(gone=None)
        for part in _parts(left):
            mine = Session.objects.for_team(team).filter(pk__in=part)
            mine.update(erasing=timezone.now())
        made.finished, made.counts = None, dict(beside)
        made.save(update_fields=["finished", "counts"])
        audit.note(team, audit.COMMAND, "erasure.repeated", str(made.pk), sessions=len(back))
    carry_out(made)
    return len(back)


def _remembered(team: Team, kept: KeptReceipt) -> Erasure:
    """The erasure of a receipt with the sessions that it refuses; stored if the backup is older."""
    receipt = kept.receipt
    finished = datetime.fromisoformat(receipt["finished"])
    made, _ = Erasure.objects.get_or_create(
        pk=receipt["erasure"],
        defaults={
            "team": team,
            "kind": receipt["kind"],
            "rule": receipt["rule"],
            "content_only": receipt["content_only"],
            "member": kept.member,
            "via": receipt["by"]["via"],
            "by": receipt["by"]["name"],
            "reason": receipt["reason"],
            "salt": receipt["salt"],
            "counts": receipt["rows"],
            "receipt": receipts.canonical(receipt),
            "finished": finished,
        },
    )
    rows = (
        ErasedSession(
            erasure=made,
            team=team,
            session=one["id"],
            name=kept.names.get(one["id"], ""),
            named=one["external_id"],
            gone=finished,
        )
        for one in receipt["sessions"]
    )
    ErasedSession.objects.bulk_create(rows, ignore_conflicts=True, batch_size=CHUNK)
    return made


def _beside(team: Team, receipt: Mapping[str, Any]) -> Iterator[QuerySet[Any]]:
    """A task's rows: the receipt has its name as a hash, with which boards are compared."""
    if receipt["kind"] == Erasure.Kind.TASK:
        boards = Board.objects.filter(team=team, kind=Board.Kind.TASK)
        for name in boards.values_list("name", flat=True):
            if receipts.hashed(receipt["salt"], name) == receipt["rule"]["value"]:
                yield from people.task_rows(team, name)


def _is_person_back(made: Erasure) -> bool:
    """Whether a member, or what there was of a team, is in the store again."""
    if made.kind == Erasure.Kind.TEAM:
        return any(rows.exists() for rows in people.team_rows(made.team, None))
    user = User.objects.filter(pk=made.member or 0).first()
    if made.kind != Erasure.Kind.MEMBER or user is None:
        return False
    rows = (Membership.objects.filter(team=made.team, user=user),)
    return any(one.exists() for one in (*rows, *people.member_rows(made.team, user)))


def _left(team: Team, receipt: Mapping[str, Any]) -> list[UUID]:
    ids = [UUID(one["id"]) for one in receipt["sessions"]]
    found: list[UUID] = []
    for part in _parts(ids):
        rows = Session.objects.for_team(team).filter(pk__in=part)
        if receipt["content_only"]:
            rows = rows.filter(content_erased=None)
        found += rows.values_list("pk", flat=True)
    return found


def _parts(ids: Sequence[UUID]) -> list[Sequence[UUID]]:
    return [ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK)]
