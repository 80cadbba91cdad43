"""What the server answers to a session of the client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: how many messages were new, and the fill of the window.

    `delay_ms` is the recommended delay before the next call; `raw` is the whole answer.
    """

    appended: int
    known: int
    budget: dict[str, Any]
    delay_ms: int
    raw: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Context:
    """A context to send to the model. `request` holds the parts the provider expects: `system`,
    `tools`, `tool_choice` and `messages`, omitted if empty, and `model` if known; and, for the
    SDK, `extra_headers` if messages need a beta."""

    id: str
    step: int
    tokens: int
    request: dict[str, Any] = field(repr=False)
    raw: dict[str, Any] = field(repr=False)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages only."""
        return list(self.request["messages"])
