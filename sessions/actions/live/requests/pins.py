"""Pins: messages that stay verbatim in every managed context."""

from __future__ import annotations

from django.db import transaction

from compaction.fold.fold import Arrival, advance
from sessions.actions.accounts import audit
from sessions.actions.live import tend
from sessions.actions.live.advance import store
from sessions.actions.live.folds import Fold, serving, with_fold
from sessions.actions.web.changed import publish
from sessions.models import Message, Pin, Session


class CannotPin(ValueError):
    """Why a message cannot be pinned, as a sentence."""


def pin(session: Session, seq: int, actor: audit.Actor = audit.COMMAND) -> Pin:
    """Pin a message; content removed from the managed context returns. Raises CannotPin."""
    message = session.messages.filter(seq=seq).first()
    if message is None:
        raise CannotPin(f"There is no message {seq}. Check its number.")
    known = Pin.objects.filter(message=message).first()
    return known or _change(session, message, actor, pinned=True)


def unpin(session: Session, seq: int, actor: audit.Actor = audit.COMMAND) -> bool:
    """Unpin a message. Returns False if it was not pinned."""
    message = session.messages.filter(seq=seq, pin__isnull=False).first()
    if message is not None:
        _change(session, message, actor, pinned=False)
    return message is not None


def _change(session: Session, message: Message, actor: audit.Actor, *, pinned: bool) -> Pin:
    run = serving(session)
    if run is None:
        with transaction.atomic():
            row = _write(session, message, pinned, actor)
        return row

    def work(fold: Fold) -> Pin:
        state, revisions = fold.state, []
        places = [p for p in _places(message) if p in state.originals and p not in state.gone]
        if places:
            refused = len(state.refusals)
            arrival = Arrival(
                state.step,
                pinned=tuple(places) if pinned else (),
                unpinned=() if pinned else tuple(places),
            )
            _, revision = advance(state, arrival)
            if any(one.strategy == "pin" for one in state.refusals[refused:]):
                raise CannotPin(f"Pinning would break the context: {state.refusals[-1].reason}.")
            revisions = [revision] if revision is not None else []
        with transaction.atomic():
            row = _write(session, message, pinned, actor)
            store(fold, session, revisions)
        return row

    row = with_fold(session, run, work)
    tend.ask(session)
    return row


def _places(message: Message) -> list[int]:
    return list(message.blocks.order_by("position").values_list("position", flat=True))


def _write(session: Session, message: Message, pinned: bool, actor: audit.Actor) -> Pin:
    row, _ = Pin.objects.get_or_create(message=message, defaults={"session": session})
    if not pinned:
        row.delete()
    act = "pin.set" if pinned else "pin.removed"
    audit.note(session.team, actor, act, session.external_id, message=message.seq)
    publish(session)
    return row
