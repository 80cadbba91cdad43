"""One line of a Claude Code conversation."""

from __future__ import annotations

from dataclasses import dataclass

from sessions.importers.records import Json
from sessions.importers.wire import mapping, milliseconds, string


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the conversation: number, type and content."""

    line: int
    form: str
    given: dict[str, Json]

    @property
    def at(self) -> int | None:
        """The time of the line in ms since the epoch."""
        return milliseconds(self.given.get("timestamp"))

    @property
    def parent(self) -> str | None:
        """The uuid of the preceding line."""
        return string(self.given.get("parentUuid")) or None

    @property
    def is_root(self) -> bool:
        """Whether it explicitly has no parent."""
        return "parentUuid" in self.given and self.given["parentUuid"] is None

    @property
    def is_error(self) -> bool:
        """Whether the client wrote it to display an error; such lines are not sent to the model."""
        return self.given.get("isApiErrorMessage") is True

    @property
    def call(self) -> str:
        """The id of the response this line belongs to."""
        stated = string(self.message.get("id")) or string(self.given.get("requestId"))
        return stated or f"line-{self.line}"

    @property
    def message(self) -> dict[str, Json]:
        """The wire message."""
        return mapping(self.given.get("message"))
