"""Sessions of live agents: made and described by those who run them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessions.importers.delivered import Unacceptable
from sessions.models import Session, Team

__all__ = ["SessionFields", "Unacceptable", "put_session", "session_fields"]


@dataclass(frozen=True, slots=True)
class SessionFields:
    """What an agent says of its session; None where it says nothing, which then stays as it was.

    `parent` is the external id of the session that started this one, `parent_call` the tool call
    in it that did; `window` is in tokens; `policy` is a preset or a policy of the team, by name or
    as name@version. `metadata` also takes fields that are none of ours.
    """

    agent: str | None = None
    model: str | None = None
    task: str | None = None
    title: str | None = None
    parent: str | None = None
    parent_call: str | None = None
    policy: str | None = None
    window: int | None = None
    outcome: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def session_fields(body: Any) -> SessionFields:
    """Read the body of a PUT (a JSON value). Raises Unacceptable."""
    raise NotImplementedError


def put_session(team: Team, external_id: str, fields: SessionFields) -> tuple[Session, bool]:
    """Make the session of this external id, or bring it up to date; whether it was made.

    A policy cannot change once there are messages. Raises Unacceptable.
    """
    raise NotImplementedError
