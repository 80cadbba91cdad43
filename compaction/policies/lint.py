"""What is known to go wrong with a policy, value by value; docs/policies.md has the same table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from compaction.policies.policy import Policy
from compaction.prices import UNKNOWN_WINDOW

Severity = Literal["warning", "note"]

LATE = 0.90
"""Share above which a trigger leaves too little for what one step may bring (Shannon)."""
RECENTS = 50
"""Newest messages that, with one primer, leave nothing to summarise and no task (Shannon)."""
EARLY = 0.30
"""Share below which a trigger summarises a context that is mostly empty (ours)."""
SUMMARY = {"compact": 1_000, "window": 200}
"""Tokens below which a summary cannot hold its form: half of what the sources give it (ours)."""
MESSAGE = 100
"""Tokens that a message has at least on average, to tell how many recents fit (ours)."""
CHARACTERS = 4
"""Characters of a token, about, to compare an excerpt with the result that it is cut from."""
LINES = 300
"""Lines below which most source files would be read twice: as an outline, then in parts (ours)."""
RECITED = 5_000
"""Tokens of recitation above which it is no reminder: it is paid in full at every call (ours)."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to think about: `path` names the value, `text` what happens and what to do.

    A `warning` costs money or facts in most sessions, a `note` in some.
    """

    path: str
    text: str
    severity: Severity


Told = Iterator[tuple[str, str, Severity]]
"""Parameter, or "" for the step itself; text; severity."""


def remarks(
    policy: Policy, *, window: int = UNKNOWN_WINDOW, reviewed: bool | None = None
) -> tuple[Remark, ...]:
    """What is known to go wrong with a policy in a window of so many tokens, in its order.

    `reviewed`: whether people looked at summaries that it wrote; None where nobody asks.
    """
    found = list(_whole(policy, reviewed))
    for index, step in enumerate(policy.steps):
        told = _RULES[step.strategy](_Place(policy, index, window), step.parameters)
        for parameter, text, severity in told:
            where = f"steps[{index}].parameters.{parameter}" if parameter else f"steps[{index}]"
            found.append(Remark(where, text, severity))
    if policy.recite is not None and policy.recite.tokens > RECITED:
        found.append(
            Remark(
                "recite.tokens",
                f"What is recited is new text at every call and never read from the cache: up to "
                f"{policy.recite.tokens:,} tokens at full price each time. Stay at or below "
                f"{RECITED:,}.",
                "note",
            )
        )
    if policy.recite is not None and policy.recite.dashboard > policy.recite.tokens:
        found.append(
            Remark(
                "recite.dashboard",
                f"The dashboard is part of what is recited, so it never gets more than the "
                f"{policy.recite.tokens:,} tokens of that, less the todo list. Raise tokens, or "
                f"make the dashboard smaller.",
                "note",
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Place:
    """A step among the others, in a window of so many tokens."""

    policy: Policy
    index: int
    window: int

    @property
    def room(self) -> int:
        return max(self.window - self.policy.kept_free(self.window), 1)

    def others(self, strategy: str) -> list[Any]:
        return [step.parameters for step in self.policy.steps if step.strategy == strategy]

    def earlier(self, *strategies: str) -> bool:
        return any(step.strategy in strategies for step in self.policy.steps[: self.index])

    def later(self, *strategies: str) -> bool:
        return any(step.strategy in strategies for step in self.policy.steps[self.index + 1 :])

    def trigger(self) -> int | None:
        """Tokens at which the first step that has a trigger acts."""
        for step in self.policy.steps:
            if hasattr(step.parameters, "trigger"):
                budget = getattr(step.parameters, "budget", 0) or self.room
                return int(step.parameters.trigger * budget)
        return None


def _whole(policy: Policy, reviewed: bool | None) -> Iterator[Remark]:
    names = [step.strategy for step in policy.steps]
    full = [step for step in policy.steps if step.strategy in ("compact", "window")]
    if not names:
        text = "Nothing is ever taken out: a session ends where the window is full. Add a step."
        yield Remark("steps", text, "note")
    elif not full:
        text = (
            "No step acts when the window is full: a session that goes on long enough stops "
            "there. Add compact or window as the last step."
        )
        yield Remark("steps", text, "warning")
    elif policy.reserve == 0 and not all(getattr(one.parameters, "budget", 0) for one in full):
        text = (
            "Nothing of the window is kept free for the output, so a long answer may not fit once "
            "the prompt is near the trigger. Set it to what the model writes at most, such as "
            "16,384."
        )
        yield Remark("reserve", text, "warning")
    if full and reviewed is False:
        text = (
            "Nobody has reviewed a summary that this policy wrote, so what it loses is not known. "
            "Let a share of them into the review queue."
        )
        yield Remark(f"steps[{policy.steps.index(full[0])}]", text, "note")


def _dedupe(place: _Place, given: Any) -> Told:
    ages = [one.age for one in place.others("offload") if one.unit == "steps"]
    if ages and (given.within == 0 or given.within >= min(ages)):
        text = (
            f"Notes rest on text that offload takes out after {min(ages)} steps, which holds that "
            f"text back or shows it again. Set it to {max(min(ages) - 1, 1)}, one less than the "
            f"age."
        )
        yield "within", text, "note"


def _outline(_place: _Place, given: Any) -> Told:
    if given.lines < LINES:
        text = (
            f"Files of {given.lines} lines are ordinary: the agent gets an outline first and reads "
            f"the parts after it, two calls instead of one. Set it to {LINES:,} or more "
            f"(CodeGenius: 3,000)."
        )
        yield "lines", text, "warning"


def _externalise(place: _Place, given: Any) -> Told:
    trigger = place.trigger()
    if trigger is not None and given.over >= trigger:
        text = (
            f"One result may fill the context before it is cut: {given.over:,} tokens are not "
            f"below the trigger, which is at {trigger:,} in a window of {place.window:,}. Set it "
            f"to a small part of that, such as 2,000."
        )
        yield "over", text, "warning"
    if given.head + given.tail >= CHARACTERS * given.over:
        text = (
            "The excerpt is about as long as the result that it is cut from, so little or nothing "
            f"is saved. Keep head and tail together below {CHARACTERS * given.over:,} characters."
        )
        yield "head", text, "note"
    if not given.keep_failures:
        yield "keep_failures", _FAILURES, "note"


def _shard(place: _Place, given: Any) -> Told:
    trigger = place.trigger()
    if trigger is not None and given.over >= trigger:
        text = (
            f"A part alone may fill the context: {given.over:,} tokens are not below the trigger, "
            f"which is at {trigger:,} in a window of {place.window:,}. Set it to 18,000 or less "
            f"(Dakou)."
        )
        yield "over", text, "warning"
    if place.earlier("externalise"):
        text = (
            "What is long enough to be split was cut to an excerpt before, so this rarely acts. "
            "Keep one of the two: shard shows all of it, externalise costs less."
        )
        yield "", text, "note"


def _replace(place: _Place, given: Any) -> Told:
    if given.batch == 1:
        text = (
            "Each result that is asked for again breaks the provider's cached prefix at the older "
            "one. Set it to 5 or more: one break for all of them (Dakou: 1)."
        )
        yield "batch", text, "note"
    if place.later("dedupe"):
        text = (
            "Files lose their older text before their newest reading is compared with it, so it is "
            "shown whole again. Move it behind dedupe."
        )
        yield "", text, "note"


def _offload(_place: _Place, given: Any) -> Told:
    if given.batch == 1 and given.unit == "steps":
        # At the very end of the prompt little is written again (recitation has age 1).
        severity: Severity = "warning" if given.age > 1 else "note"
        text = (
            f"Something leaves at every step, so the provider's cached prefix breaks at every call "
            f"and the last {given.age + 1} steps or so are written again. Set it to 5: one break "
            f"for five steps."
        )
        yield "batch", text, severity
    elif given.age < given.batch:
        text = (
            f"Results stand for {given.age} to {given.age + given.batch - 1} {given.unit}: more by "
            f"the batch than by the age, and by turns whole and gone. Set it to {given.batch} or "
            f"more, or make the batch smaller."
        )
        yield "age", text, "note"
    if not given.keep_failures:
        yield "keep_failures", _FAILURES, "note"


_FAILURES = (
    "What failed goes like everything else, and an agent that no longer sees it tends to try the "
    "same again. Leave it on unless failures are long and many."
)


_STUBS = ("offload", "payback", "externalise")
"""Steps that put aside what can be fetched again."""


def _compact(place: _Place, given: Any) -> Told:
    yield from _summarised(given, "compact")
    if not place.earlier(*_STUBS):
        if place.later(*_STUBS):
            text = (
                "Runs before the steps that make stubs, and so summarises what they would have "
                "cut without loss. Move it behind them."
            )
        else:
            text = (
                "Tool output is summarised though it could be put aside and fetched again. Add "
                "payback or offload before it: stubs lose nothing, summaries do."
            )
        yield "", text, "note"
    if given.user_tokens >= int(given.trigger * place.room):
        text = (
            f"User messages that stay may alone reach the trigger, at "
            f"{int(given.trigger * place.room):,} tokens in a window of {place.window:,}: then "
            f"nothing is summarised. Set it well below."
        )
        yield "user_tokens", text, "warning"


def _window(place: _Place, given: Any) -> Told:
    yield from _summarised(given, "window")
    if given.primers <= 1 and given.recents >= RECENTS:
        text = (
            f"With {given.primers} of the first messages and {given.recents} of the newest the "
            f"task is soon known from the summary alone. Keep 3 primers and 20 recents."
        )
        yield "primers", text, "warning"
    if 0 < given.messages <= given.primers + given.recents:
        text = (
            f"{given.primers} primers and {given.recents} recents are all of the {given.messages} "
            f"messages, so nothing lies between them to be summarised. Set it to "
            f"{2 * (given.primers + given.recents)} or so."
        )
        yield "messages", text, "warning"
    target = int(given.target * (given.budget or place.room))
    if given.recents * MESSAGE > target:
        text = (
            f"{given.recents} messages rarely fit the {target:,} tokens that the context is "
            f"brought down to, so fewer stay. Keep at most {max(target // MESSAGE, 1):,}, or raise "
            f"the target."
        )
        yield "recents", text, "note"
    if given.target >= given.trigger:
        text = (
            "The context is brought down to no less than the trigger, so it is cut again at once. "
            "Set it to about half of the trigger."
        )
        yield "target", text, "warning"


def _summarised(given: Any, strategy: str) -> Told:
    if given.trigger > LATE:
        text = (
            f"Less than {100 - LATE * 100:.0f} % is left when it acts: one large result fills the "
            f"window before the summary is written. Set it to {LATE:.2f} or less; the sources have "
            f"0.70 and 0.75."
        )
        yield "trigger", text, "warning"
    elif given.trigger < EARLY:
        text = (
            "Summarises while most of the window is free, and loses what would still have fitted. "
            "Set it to 0.50 or more unless you want a lean context."
        )
        yield "trigger", text, "note"
    if given.summary_tokens < SUMMARY[strategy]:
        text = (
            f"A summary of {given.summary_tokens} tokens cannot hold what its form asks for, and "
            f"drops paths and numbers first. Give it {SUMMARY[strategy]:,} or more."
        )
        yield "summary_tokens", text, "warning"
    if given.rearm == 0 and given.progress == 0:
        text = (
            "A context that stays above the trigger is summarised again at every step. Set it to "
            "0.10, so that it must have grown."
        )
        yield "rearm", text, "warning"


def _payback(place: _Place, given: Any) -> Told:
    if place.others("offload"):
        text = (
            "Offload takes out by age alone what this weighs by price, and then little is left to "
            "weigh. Keep one of the two: payback costs less, offload keeps less in the prompt."
        )
        yield "", text, "note"
    trigger = place.trigger()
    if trigger is not None and int(given.full * place.room) > trigger:
        text = (
            f"History is summarised from {trigger:,} tokens on, before all that is ripe leaves at "
            f"{int(given.full * place.room):,}: facts are lost that a stub would have kept. Set it "
            f"below the trigger."
        )
        yield "full", text, "note"
    if given.readings <= given.done:
        yield (
            "readings",
            f"What was read is ripe after {given.readings} steps, whether its file was changed "
            f"since or not. Keep it above {given.done}: what was not acted on yet is still needed.",
            "note",
        )
    if place.policy.objective == "cheap" and given.patience < 1:
        yield (
            "patience",
            "Text leaves before reading it has cost what rewriting the cache costs, so many edits "
            "never pay. Set it to 1 or more.",
            "warning",
        )


_RULES: dict[str, Callable[[_Place, Any], Told]] = {
    "dedupe": _dedupe,
    "outline": _outline,
    "externalise": _externalise,
    "shard": _shard,
    "replace": _replace,
    "payback": _payback,
    "offload": _offload,
    "compact": _compact,
    "window": _window,
}
