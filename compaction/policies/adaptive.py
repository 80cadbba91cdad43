"""What a team's own compactions suggest for the next ones: when, how large, in which form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.strategies.compact import Compact
from compaction.summaries.quality import Fit

LEAST = 5
"""Compactions below which nothing is proposed (ours)."""

OFTEN = 3
"""Something is often missed where one compaction in so many misses it (ours)."""

CHANGING = 20
"""A session edits where one tool call in so many changes a file (ours)."""

LATEST = 0.90
"""The latest trigger that is proposed: above it the linter warns (Shannon)."""

CHEAP_READ, DEAR_READ = 0.25, 0.5
"""Share of the input price up to which reading from the cache is cheap, and from which it is dear
(ours: listed models ask 0.05 to 0.25, or have no discount)."""

Task = Literal["editing", "research", "chat"]
"""What an agent mostly does: it changes files, it reads, or it talks."""


@dataclass(frozen=True, slots=True)
class Past:
    """One compaction that was: the session's task, how it fitted, and the measures that it missed
    (`quality.Measure.name`)."""

    task: Task
    fit: Fit
    missed: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """The window in tokens, and what a cache read costs of the input price; None where unknown."""

    window: int | None = None
    read: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What one parameter is and might be, and why; `value` is None where nothing is proposed."""

    name: Literal["trigger", "summary_tokens", "user_tokens", "form"]
    now: float | int | str
    value: float | int | str | None
    reason: str


def task_of(calls: int, changes: int, said: int) -> Task:
    """The task of a session by its tool calls, those of them that change files, and the messages
    of people."""
    if calls < said or not calls:
        return "chat"
    return "editing" if CHANGING * changes >= calls else "research"


def suggestions(past: Sequence[Past], now: Compact, model: Model) -> tuple[Suggestion, ...]:
    """One line for each parameter, of compactions that were made under `now`.

    Where there are fewer than `LEAST`, no value is proposed and the reason says so. Each rule moves
    a value by one step, so that the next compactions can tell whether that was right; all rules
    and numbers are ours (docs/strategies.md).
    """
    if len(past) < LEAST:
        few = f"unknown: {len(past)} of the {LEAST} compactions that it takes"
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
        """Compactions that missed any of these measures."""
        return sum(any(name in one.missed for name in names) for one in self.past)

    def often(self, count: int) -> bool:
        """Whether so many are too many."""
        return OFTEN * count >= len(self.past)

    @property
    def over(self) -> int:
        """Compactions that took out too much."""
        return sum(one.fit == "over" for one in self.past)

    @property
    def task(self) -> Task | None:
        """What most of the sessions do; None where no task has more than half."""
        task, count = Counter(one.task for one in self.past).most_common(1)[0]
        return task if 2 * count > len(self.past) else None

    def told(self, count: int, what: str) -> str:
        """So many of all, in words."""
        return f"{count} of {len(self.past)} {what}"

    def trigger(self) -> Suggestion:
        """Later where compactions lose too much or win too little; else by the cache's price."""
        now, read = self.now.trigger, self.model.read
        if self.often(small := self.count("gain", "smaller")):
            return self._later(0.10, self.told(small, "won less than a tenth: they came too early"))
        if self.often(self.over):
            # Whoever edits needs the exact state of files, which a summary has least of.
            step = 0.10 if self.task == "editing" else 0.05
            why = self.told(self.over, "took out too much: later means less often")
            return self._later(step, f"{why}; most sessions are {self.task or 'mixed'}")
        if read is None:
            return self._stay("trigger", "what was taken out fits; the model's price is unknown")
        if read >= DEAR_READ and now > 0.70:
            why = f"what was taken out fits, and a cache read costs {read:.0%} of the input price"
            return Suggestion("trigger", now, round(max(now - 0.10, 0.70), 2), why)
        if read <= CHEAP_READ and now < 0.80:
            why = f"a cache read costs {read:.0%} of the input price, a compaction rewrites it all"
            return self._later(0.05, why)
        return self._stay("trigger", "what was taken out fits")

    def _later(self, step: float, why: str) -> Suggestion:
        now, window = self.now.trigger, self.model.window
        # The summary and the next answers must fit into what the trigger leaves.
        room = 1 - 2 * self.now.summary_tokens / window if window else LATEST
        value = round(min(now + step, LATEST, room), 2)
        if value <= now:
            return self._stay("trigger", f"{why}; but later leaves no room to write one")
        return Suggestion("trigger", now, value, why)

    def summary_tokens(self) -> Suggestion:
        """Half more where summaries lack what the agent needs."""
        now = self.now.summary_tokens
        state = {"changed", "open_errors", "todos"}
        # Where only words of people are lost, `user_tokens` is to blame.
        lacking = sum(
            one.fit == "over" and ("messages" not in one.missed or bool(state & set(one.missed)))
            for one in self.past
        )
        if not self.often(lacking):
            return self._stay("summary_tokens", "few summaries lack what came to be needed")
        # A twentieth of the window (ours): beyond that it is history, and not a summary of it.
        most = self.model.window // 20 if self.model.window else 10_000
        value = min(-(-3 * now // 200) * 100, most)
        why = self.told(lacking, "lack files, errors, todos or what later calls named")
        if value <= now:
            return self._stay("summary_tokens", f"{why}; but more is a twentieth of the window")
        return Suggestion("summary_tokens", now, value, why)

    def user_tokens(self) -> Suggestion:
        """Twice where words of people are lost, half where what stays is too much."""
        now, window = self.now.user_tokens, self.model.window
        if self.often(untold := self.count("messages")):
            why = self.told(untold, "tell nowhere what a person said")
            value = min(2 * max(now, 1_000), window // 10 if window else 40_000)
            if value > now:
                return Suggestion("user_tokens", now, value, why)
            return self._stay("user_tokens", f"{why}; but more is a tenth of the window")
        if self.often(large := self.count("target")):
            why = self.told(large, "leave more than the target of the window")
            if self.task == "chat":
                return self._stay("user_tokens", f"{why}; but in a chat these words are the work")
            if now > 2_000:
                return Suggestion("user_tokens", now, max(now // 2, 2_000), why)
        return self._stay("user_tokens", "the words of people fit")

    def form(self) -> Suggestion:
        """Dakou's form where edits get lost in nine sections, nine where words get lost in it."""
        now, task = self.now.form, self.task
        if task is None:
            return self._stay("form", "sessions are mixed")
        state = self.count("changed", "open_errors")
        if now == "nine" and task == "editing" and self.often(state):
            why = "lack changed files or open errors; this form has operations by their last state"
            return Suggestion("form", now, "progress", self.told(state, why))
        words = self.count("messages", "todos")
        if now == "progress" and task != "editing" and self.often(words):
            why = "lack words of people or todos; nine sections list them"
            return Suggestion("form", now, "nine", self.told(words, why))
        return self._stay("form", f"fits; most sessions are {task}")

    def _stay(
        self, name: Literal["trigger", "summary_tokens", "user_tokens", "form"], why: str
    ) -> Suggestion:
        return Suggestion(name, getattr(self.now, name), None, why)
