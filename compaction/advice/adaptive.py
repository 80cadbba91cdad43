"""Suggest compaction settings from a team's own compactions: when, how large, in which form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from compaction.losses.quality import Fit
from compaction.strategies.compact_settings import Compact

LEAST = 5
"""Minimum compactions for a suggestion (our choice)."""

OFTEN = 3
"""A measure is missed often if one compaction in this many misses it (our choice)."""

CHANGING = 20
"""A session edits if one tool call in this many changes a file (our choice)."""

LATEST = 0.90
"""The highest trigger suggested: above it the linter warns (Shannon)."""

CHEAP_READ, DEAR_READ = 0.25, 0.5
"""Cache read price as a share of the input price: cheap up to the first, expensive from the second
(our choice: listed models charge 0.05 to 0.25, or give no discount)."""

_MOST_SUMMARY = {one.name: one.metadata for one in fields(Compact)}["summary_tokens"]["max"]

Task = Literal["editing", "research", "chat"]
"""The main activity of an agent: changing files, reading, or chatting."""


@dataclass(frozen=True, slots=True)
class Past:
    """A past compaction: the session's task, how it fitted, and the measures missed (by name)."""

    task: Task
    fit: Fit
    missed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """The window in tokens, and cache read price / input price; None if unknown."""

    window: int | None = None
    read: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The current and suggested value of a setting, and why; `value` None suggests no change."""

    name: Literal["trigger", "summary_tokens", "user_tokens", "form"]
    now: float | int | str
    value: float | int | str | None
    reason: str


def task_of(calls: int, changes: int, said: int) -> Task:
    """Return the task of a session.

    Decided by its tool calls, those that change files, and the number of people's messages.
    """
    if calls < said or not calls:
        return "chat"
    return "editing" if CHANGING * changes >= calls else "research"


def suggestions(past: Sequence[Past], now: Compact, model: Model) -> tuple[Suggestion, ...]:
    """Return one suggestion per setting, from compactions made under `now`.

    With fewer than `LEAST` compactions no value is suggested, and the reason says so. Each rule
    moves a value by one step, so that the next compactions show whether that was right; all rules
    and numbers are our choice.
    """
    if len(past) < LEAST:
        few = f"unknown: {len(past)} of the {LEAST} compactions needed"
        return tuple(
            Suggestion(name, getattr(now, name), None, few)
            for name in ("trigger", "summary_tokens", "user_tokens", "form")
        )
    known = _Known(past, now, model)
    return (known.trigger(), known.summary_tokens(), known.user_tokens(), known.form())


@dataclass(frozen=True, slots=True)
class _Known:
    past: Sequence[Past]
    now: Compact
    model: Model

    def count(self, *names: str) -> int:
        """Count the compactions that missed any of these measures."""
        return sum(any(name in one.missed for name in names) for one in self.past)

    def often(self, count: int) -> bool:
        """Return whether this many are too many."""
        return OFTEN * count >= len(self.past)

    @property
    def over(self) -> int:
        """Compactions that removed too much."""
        return sum(one.fit == "over" for one in self.past)

    @property
    def task(self) -> Task | None:
        """What most of the sessions do; None if no task has more than half."""
        task, count = Counter(one.task for one in self.past).most_common(1)[0]
        return task if 2 * count > len(self.past) else None

    def _of_all(self, count: int, what: str) -> str:
        return f"{count} of {len(self.past)} {what}"

    def trigger(self) -> Suggestion:
        """Suggest later if compactions lose too much or free too little; else by cache price."""
        now, read = self.now.trigger, self.model.read
        if self.often(small := self.count("gain", "smaller")):
            return self._later(
                0.10, self._of_all(small, "freed less than a tenth: they came too early")
            )
        if self.often(self.over):
            # Editing needs the exact state of files, which summaries preserve least.
            step = 0.10 if self.task == "editing" else 0.05
            why = self._of_all(self.over, "removed too much: later means less often")
            return self._later(step, f"{why}; most sessions are {self.task or 'mixed'}")
        if read is None:
            return self._stay("trigger", "the amount removed fits; the model's price is unknown")
        if read >= DEAR_READ and now > 0.70:
            why = f"the amount removed fits, and a cache read costs {read:.0%} of the input price"
            return Suggestion("trigger", now, round(max(now - 0.10, 0.70), 2), why)
        if read <= CHEAP_READ and now < 0.80:
            why = f"a cache read costs {read:.0%} of the input price, a compaction rewrites it all"
            return self._later(0.05, why)
        return self._stay("trigger", "the amount removed fits")

    def _later(self, step: float, why: str) -> Suggestion:
        now, window = self.now.trigger, self.model.window
        # The summary and the next answers must fit into the room above the trigger.
        room = 1 - 2 * self.now.summary_tokens / window if window else LATEST
        value = round(min(now + step, LATEST, room), 2)
        if value <= now:
            return self._stay("trigger", f"{why}; but later leaves no room for the summary")
        return Suggestion("trigger", now, value, why)

    def summary_tokens(self) -> Suggestion:
        """Suggest half more if summaries lack what the agent needs."""
        now = self.now.summary_tokens
        state = {"changed", "open_errors", "todos"}
        # If only people's messages are lost, `user_tokens` is to blame.
        lacking = sum(
            one.fit == "over" and ("messages" not in one.missed or bool(state & set(one.missed)))
            for one in self.past
        )
        if not self.often(lacking):
            return self._stay("summary_tokens", "few summaries lack what was needed later")
        # At most a twentieth of the window (our choice): more is not a summary.
        most = self.model.window // 20 if self.model.window else 10_000
        value = min(-(-3 * now // 200) * 100, most, _MOST_SUMMARY)
        why = self._of_all(lacking, "lack files, errors, to-do items or facts needed later")
        if value <= now:
            return self._stay(
                "summary_tokens", f"{why}; but more would exceed a twentieth of the window"
            )
        return Suggestion("summary_tokens", now, value, why)

    def user_tokens(self) -> Suggestion:
        """Suggest twice as much if people's messages are lost, half if too much stays."""
        now, window = self.now.user_tokens, self.model.window
        if self.often(missing := self.count("messages")):
            why = self._of_all(missing, "lose what a person said")
            value = min(2 * max(now, 1_000), window // 10 if window else 40_000)
            if value > now:
                return Suggestion("user_tokens", now, value, why)
            return self._stay("user_tokens", f"{why}; but more would exceed a tenth of the window")
        if self.often(large := self.count("target")):
            why = self._of_all(large, "leave the context above its target")
            if self.task == "chat":
                return self._stay(
                    "user_tokens", f"{why}; but in a chat these messages are the work"
                )
            if now > 2_000:
                return Suggestion("user_tokens", now, max(now // 2, 2_000), why)
        return self._stay("user_tokens", "people's messages fit")

    def form(self) -> Suggestion:
        """Suggest Dakou's form if edits get lost in nine sections, or nine if messages do."""
        now, task = self.now.form, self.task
        if task is None:
            return self._stay("form", "sessions are mixed")
        state = self.count("changed", "open_errors")
        if now == "nine" and task == "editing" and self.often(state):
            why = "lack changed files or open errors; this form lists operations by final state"
            return Suggestion("form", now, "progress", self._of_all(state, why))
        words = self.count("messages", "todos")
        if now == "progress" and task != "editing" and self.often(words):
            why = "lack people's messages or to-do items; nine sections list them"
            return Suggestion("form", now, "nine", self._of_all(words, why))
        return self._stay("form", f"fits; most sessions are {task}")

    def _stay(
        self, name: Literal["trigger", "summary_tokens", "user_tokens", "form"], why: str
    ) -> Suggestion:
        return Suggestion(name, getattr(self.now, name), None, why)
