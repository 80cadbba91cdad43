"""Compaction by request: asked for through the API, done by a job."""

from __future__ import annotations

from sessions.actions.attempts import Outcome, Running
from sessions.models import Job, Session


def request_compaction(session: Session, instructions: str = "") -> Job:
    """Ask for a compaction of the served context now. Raises CannotCompact without a policy."""
    raise NotImplementedError


def compact(running: Running) -> Outcome:
    """The job kind `compact`: payload {session, instructions: sha of a blob or ""}."""
    raise NotImplementedError
