"""What keeps each note of a board in view: its message, a replacement, or the board itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse

from sessions.actions.web.verdicts import EventVerdict, counted
from sessions.models import Entry, Note, Run, Session
from sessions.models.record.values import CHUNK
from sessions.views.web.places import step_url


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note with its source, and what keeps it in view: `in_context` if its message still is, and
    `shown` if the board as a model reads it has room for it."""

    note: Note
    url: str
    place: str
    carried: str
    revision_url: str = ""
    in_context: bool = False
    shown: bool = True

    @property
    def state(self) -> str:
        """`context`, `board`, or `risk` if neither its message nor the board carries it."""
        return "context" if self.in_context else "board" if self.shown else "risk"


def carried(rows: Iterable[Note]) -> list[NoteRow]:
    """Find the source of each note: a message in context, a summary that replaced it, a share, or
    the board only."""
    listed = list(rows)
    closed = _closed(listed)
    made = []
    for row in listed:
        if row.share is not None:
            url = reverse("replay", args=[row.share.session.pk])
            made.append(NoteRow(row, url, str(row.share.session), f"share {row.share.number}"))
        elif row.session is None or row.message is None:
            by = {"agent": "added by an agent", "person": "added by hand"}
            what = f"seen {sum(row.evidence.values())} times" if row.evidence else ""
            url = reverse("replay", args=[row.session.pk]) if row.session is not None else ""
            name = str(row.session) if row.session is not None else ""
            made.append(NoteRow(row, url, name, what or by.get(row.by, "this board only")))
        else:
            url = place_of(row.session, row.message)
            place = f"message {row.message}"
            gone = closed.get((row.session.pk, row.message))
            if gone is None:
                made.append(NoteRow(row, url, place, "in context", in_context=True))
            else:
                run, number = gone
                address = reverse("revision", args=[row.session.pk, run, number])
                made.append(NoteRow(row, url, place, f"left the context at r{number}", address))
    return made


def _closed(rows: list[Note]) -> dict[tuple[UUID, int], tuple[str, int]]:
    """Messages that left the current context: in which run, by which revision."""
    wanted: dict[UUID, set[int]] = defaultdict(set)
    for row in rows:
        if row.session_id is not None and row.message is not None:
            wanted[row.session_id].add(row.message)
    found: dict[tuple[UUID, int], tuple[str, int]] = {}
    for session, seqs in list(wanted.items())[:CHUNK]:
        runs = Run.objects.filter(session=session, origin__in=("managed", "recorded"))
        run = runs.order_by("-origin").values_list("pk", "origin").first()
        if run is None:
            continue
        left = Entry.objects.filter(
            run=run[0], block__message__seq__in=sorted(seqs), closed_by__isnull=False
        )
        for seq, number in left.values_list("block__message__seq", "closed_by__revision__number"):
            found[session, seq] = (run[1], number)
    return found


def board_verdict(rows: Sequence[NoteRow]) -> EventVerdict:
    """How many of the notes shown nothing carries any more, and what carries the others."""
    states = Counter(row.state for row in rows)
    board = f"; {states['board']:,} on the board only" if states["board"] else ""
    carried_by = f"{counted(states['context'], 'note')} still in context{board}."
    shown = counted(len(rows), "note")
    if not states["risk"]:
        where = "in context or on the board"
        return EventVerdict("good", f"Nothing at risk: {shown} shown, {where}.", carried_by)
    why = "Their messages left the context, and the board has no room for them."
    risk = f"{states['risk']:,} of {shown} shown at risk."
    return EventVerdict("bad", risk, f"{why} {carried_by}")


def place_of(session: Session, message: int) -> str:
    """The URL of a message in the replay."""
    born = session.messages.filter(seq=message).values_list("born", flat=True).first()
    return step_url(session, born or 1, None, str(message))
