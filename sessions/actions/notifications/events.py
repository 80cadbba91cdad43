"""The events that people can be notified of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from sessions import figures

Unit = Literal["", "microusd", "percent", "facts"]


@dataclass(frozen=True, slots=True)
class NotifiedEvent:
    """An event: its name on pages, when it happens, and the unit and default of its threshold."""

    name: str
    title: str
    when: str
    unit: Unit = ""
    default: int | None = None
    every: bool = False
    """Whether each one is sent, without quiet time and hourly limit."""

    def quiet(self, minutes: int) -> int:
        """The minutes for which a rule is quiet about the same cause."""
        return 0 if self.every else minutes


EVENTS = {
    event.name: event
    for event in (
        NotifiedEvent("approval", "Approval waiting", "A call over budget waits for a person."),
        NotifiedEvent(
            "budget",
            "Budget near or at its limit",
            "Spending passes the share at which the budget warns, or its limit.",
            "percent",
            80,
        ),
        NotifiedEvent(
            "guardrail", "Guardrail broken", "A limit is exceeded, and the rollout is paused."
        ),
        NotifiedEvent("rollback", "Rollout rolled back", "New sessions use the former policy."),
        NotifiedEvent(
            "break",
            "Cache break",
            "A call of a live session pays again for tokens that were cached.",
            "microusd",
            100_000,
        ),
        NotifiedEvent(
            "lost",
            "Lost fact needed again",
            "A summary of a live session lost facts that a later step named.",
            "facts",
            1,
        ),
        NotifiedEvent("job", "Job failed", "A job failed at all its attempts."),
        NotifiedEvent(
            "audit", "Audit log entry", "An entry is added to the audit log.", every=True
        ),
    )
}

TEST = "test"
"""The event of a test, which needs no rule."""


def title_of(event: str) -> str:
    """An event's name on pages."""
    return "Test" if event == TEST else EVENTS[event].title if event in EVENTS else event


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened, for notifications: names and numbers, never content.

    `key` is the same for the same occurrence, `cause` for all of the same cause; `value` is in the
    event's unit, None if unknown. `path` is the page that shows more.
    """

    event: str
    key: str
    cause: str
    title: str
    path: str
    value: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "microusd": figures.money,
    "tokens": figures.tokens,
    "share": figures.percent,
}


_PROOF = ("salts", "previous", "hash")


def fact_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts as labels and text; the last word of a name is its unit. What proves an entry of the
    audit log is left to programs, and so is what is unknown."""
    lines = []
    for name, value in facts.items():
        if name in _PROOF or value in (None, {}):
            continue
        if isinstance(value, dict):
            lines += fact_lines(value)
            continue
        words = name.split("_")
        write = _WRITTEN.get(words[-1], str)
        if words[-1] == "microusd":
            words.pop()
        lines.append((" ".join(words).capitalize(), write(value)))
    return lines
