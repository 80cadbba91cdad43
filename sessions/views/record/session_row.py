"""One session as the list shows it."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.models import Block, Session
from sessions.views.web.places import entry_url
from sessions.views.web.sparklines import Sparkline


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session as the list shows it; `match` is the block containing the searched text, and
    `new` if it arrived since the person's previous visit."""

    session: Session
    sparkline: Sparkline
    match: Block | None
    new: bool = False

    @property
    def name(self) -> str:
        """The session's title."""
        return str(self.session)

    @property
    def match_url(self) -> str:
        """The URL of the entry with the searched text."""
        assert self.match is not None
        return entry_url(self.session, self.match)

    @property
    def short_id(self) -> str:
        """Both ends of the external id: those of one agent or file often begin alike."""
        named = self.session.external_id
        return named if len(named) <= 18 else f"{named[:8]}…{named[-8:]}"

    @property
    def orphan(self) -> bool:
        """Whether it is a sub-agent whose parent is missing."""
        return bool(self.session.parent_external_id) and self.session.parent_id is None
