"""A line of a Claude Code conversation, by the names that matter."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.importers.records import Json
from sessions.importers.wire import mapping, milliseconds, string


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the conversation: its number, its type, its object."""

    line: int
    form: str
    given: dict[str, Json]

    @property
    def at(self) -> int | None:
        """When it was written."""
        return milliseconds(self.given.get("timestamp"))

    @property
    def parent(self) -> str | None:
        """Uuid of the line it follows."""
        return string(self.given.get("parentUuid")) or None

    @property
    def is_root(self) -> bool:
        """Whether it states that it follows nothing."""
        return "parentUuid" in self.given and self.given["parentUuid"] is None

    @property
    def is_error(self) -> bool:
        """Whether the client wrote it to show an error; such lines are sent to no model."""
        return self.given.get("isApiErrorMessage") is True

    @property
    def call(self) -> str:
        """Id of the response that this line is part of."""
        stated = string(self.message.get("id")) or string(self.given.get("requestId"))
        return stated or f"line-{self.line}"

    @property
    def message(self) -> dict[str, Json]:
        """Its wire message."""
        return mapping(self.given.get("message"))
