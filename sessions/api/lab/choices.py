"""A choice of sessions that cannot be taken, as a problem."""

from __future__ import annotations

from sessions.actions.lab.choices import NoChoice
from sessions.api.web.problems import Refusal


def refused(error: NoChoice, where: str) -> Refusal:
    """A 422 refusal of a choice; `where` is the prefix of its field."""
    text = str(error)
    sentence = text if text.endswith(".") else f"{error.field} {text}."
    return Refusal(422, "No sessions chosen", sentence, field=where + error.field)
