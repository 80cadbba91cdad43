"""Receivers of signals between subjects: the only way from a lower subject to a higher one."""

from __future__ import annotations

from typing import Any

from sessions.actions.reviews.reviews import want_no_more_than_can
from sessions.models import Team
from sessions.signals import members_changed


def connect() -> None:
    """Connect all receivers; called once, when apps are ready."""
    members_changed.connect(_reviews_follow_members)


def _reviews_follow_members(team: Team, **_: Any) -> None:
    want_no_more_than_can(team)
