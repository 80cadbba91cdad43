"""The record that describes a strategy; each strategy file defines one as `STRATEGY`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from compaction.cache.economy import Objective
from compaction.proposals.plan import Mark, Proposal, View

Severity = Literal["warning", "note"]

Event = Literal["entry", "offload", "compaction", "window"]
"""How a timeline shows the edits of a strategy. `entry`: a result is shortened on arrival;
`offload`: blocks are replaced by stubs; `compaction` and `window`: history becomes a summary."""

Knowledge = Literal["repeats", "ripening", "facts"]
"""What the fold maintains for strategies that ask for it: `View.repeats`, `View.ripening`, and
the holders of facts in it."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A known problem: `path` names the setting, `text` what happens and what to do.

    A `warning` costs money or facts in most sessions, a `note` in some. In remarks of a strategy,
    `path` is the name of its setting, or "" for the step itself.
    """

    path: str
    text: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Place:
    """A step among the others of its policy, in a window of this many tokens.

    `room` is the window minus the reserve, in tokens.
    """

    steps: tuple[tuple[Strategy, Any], ...]
    """Strategies with their settings, in order."""
    index: int
    window: int
    room: int
    objective: Objective

    @property
    def before(self) -> list[Strategy]:
        """Strategies of the steps before this one."""
        return [strategy for strategy, _ in self.steps[: self.index]]

    @property
    def after(self) -> list[Strategy]:
        """Strategies of the steps after this one."""
        return [strategy for strategy, _ in self.steps[self.index + 1 :]]

    def parameters_of(self, name: str) -> list[Any]:
        """Return the settings of all steps of a strategy."""
        return [parameters for strategy, parameters in self.steps if strategy.name == name]

    def trigger(self) -> int | None:
        """Return the tokens at which the first step with a trigger acts."""
        for _, parameters in self.steps:
            if hasattr(parameters, "trigger"):
                budget = getattr(parameters, "budget", 0) or self.room
                return int(parameters.trigger * budget)
        return None


def failure_remarks(kept: bool) -> Iterator[Remark]:
    """Yield remarks on the setting `keep_failures`."""
    if not kept:
        text = (
            "Failures are removed like everything else, and an agent that no longer sees them "
            "tends to repeat them. Leave it on unless failures are long and frequent."
        )
        yield Remark("keep_failures", text, "note")


def no_remarks(place: Place, given: Any) -> Iterator[Remark]:  # noqa: ARG001
    """Yield nothing, for a strategy without known problems."""
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A strategy: what it does, and everything that pages, linter, tuner, tests and docs say about
    it.

    `parameters` is a frozen dataclass whose fields are made by `setting`
    (compaction/proposals/setting.py): default, label, help, unit, range and what the tuner tries.
    """

    name: str
    """Used in policies, ids of replacements and stored edits, so it never changes."""
    order: int
    """Its place in lists, and where the tuner adds it to a policy: tidy first, then compress. No
    two have the same."""
    title: str
    does: str
    """What it does, in one sentence."""
    event: Event
    propose: Callable[[View, Any], Proposal]
    parameters: type[Any]
    mark: Mark = field(default_factory=dict)
    docs: str = ""
    """Anchor of its section in docs/policies/strategies.md."""
    remarks: Callable[[Place, Any], Iterator[Remark]] = no_remarks
    """Yields the known problems of its settings at a place."""
    joins: bool = False
    """Whether the tuner may add it to a policy."""
    aim: str = ""
    """A policy needs only one of the strategies with the same aim."""
    puts_aside: bool = False
    """Whether it offloads tool output of any kind that can be read back."""
    heeds_objective: bool = False
    asks: frozenset[Knowledge] = frozenset()

    @property
    def summarizes(self) -> bool:
        """Whether it acts whenever the window is full."""
        return self.event in ("compaction", "window")
