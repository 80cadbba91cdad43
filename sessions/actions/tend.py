"""Tend: what a worker does for a live session after each append."""

from __future__ import annotations

from sessions.actions.attempts import Running
from sessions.models import Job, Session


def ask(session: Session) -> Job:
    """Ask for the session to be tended; call inside the transaction that holds its row's lock."""
    raise NotImplementedError


def tend(running: Running) -> None:
    """The job kind `tend`: payload {session}. It ends itself: what ends well leaves no row."""
    raise NotImplementedError
