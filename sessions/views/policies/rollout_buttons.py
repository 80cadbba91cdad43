"""Buttons for a rollout in its current state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from sessions.actions.policies import rollouts as actions
from sessions.actions.policies.bounds import BOUNDS
from sessions.actions.policies.rollout_rules import Act, why_not
from sessions.actions.policies.rollouts import STAGES
from sessions.models import PolicyVersion, Rollout

State = Rollout.State


@dataclass(frozen=True, slots=True)
class Button:
    """One possible action on a rollout.

    `text` says what it does, `why_not` why the user cannot do it now.
    """

    act: Act
    name: str
    text: str
    why_not: str
    kind: str = ""
    share: int | None = None
    reason: bool = False
    """Whether it asks for a reason."""


def buttons(found: Rollout, before: PolicyVersion, user: User) -> list[Button]:
    """The possible actions in this state, most common first."""
    return [
        Button(
            act,
            *_words(found, before, act),
            why_not=why_not(found, act, user),
            share=actions.next_stage(found) if act == "widen" else None,
            **_more(found, act),
        )
        for act in _OFFERED.get(found.state, ())
    ]


_OFFERED: dict[str, tuple[Act, ...]] = {
    State.PROPOSED: ("accept", "decline"),
    State.RUNNING: ("widen", "pause", "roll_back"),
    State.PAUSED: ("resume", "roll_back"),
    State.COMPLETE: ("roll_back",),
}
_MORE: dict[Act, dict[str, Any]] = {
    "accept": {"kind": "primary"},
    "widen": {"kind": "primary"},
    "decline": {"reason": True},
    "pause": {"reason": True},
    "resume": {"kind": "primary"},
    "roll_back": {"kind": "danger", "reason": True},
}


def _more(found: Rollout, act: Act) -> dict[str, Any]:
    """Resuming with exceeded limits is not a primary action."""
    more = _MORE[act]
    return more | {"kind": ""} if act == "resume" and actions.broken(found) else more


def _words(found: Rollout, before: PolicyVersion, act: Act) -> tuple[str, str]:
    """The label of a button, and what it does."""
    if act == "accept":
        return "Accept", f"{STAGES[0]} % of new sessions start with {found.version}."
    if act == "decline":
        return "Decline", "The rollout ends; no session uses this version."
    if act == "widen":
        share = actions.next_stage(found)
        if share == STAGES[-1]:
            return "Complete: 100 %", f"All new sessions start with {found.version} from now on."
        return f"Widen to {share} %", f"{share} % of new sessions start with {found.version}."
    if act == "pause":
        return "Pause", f"New sessions start with {before} until you resume."
    if act == "resume":
        off = [BOUNDS[name].title.lower() for name in actions.broken(found)]
        without = f", without the limit on {' and '.join(off)}" if off else ""
        return "Resume", f"Continues at {found.share} %{without}."
    return (
        "Roll back",
        f"All new sessions start with {before} again, immediately. Running sessions keep theirs.",
    )
