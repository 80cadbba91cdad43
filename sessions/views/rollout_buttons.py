"""What can be done with a rollout in its state, and in words what that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from sessions.actions import rollouts as actions
from sessions.actions.bounds import BOUNDS
from sessions.actions.rollout_rules import Act, why_not
from sessions.actions.rollouts import STAGES
from sessions.models import PolicyVersion, Rollout

State = Rollout.State


@dataclass(frozen=True, slots=True)
class Button:
    """One thing that can be done with a rollout as it stands.

    `text` says what it does, `why_not` why this person cannot do it now.
    """

    act: Act
    name: str
    text: str
    why_not: str
    kind: str = ""
    share: int | None = None
    reason: bool = False
    """Whether it asks why."""


def buttons(found: Rollout, before: PolicyVersion, user: User) -> list[Button]:
    """What can be done in this state, the usual first."""
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
    """To go on is no usual thing while a bound is broken: then no button stands out for it."""
    more = _MORE[act]
    return more | {"kind": ""} if act == "resume" and actions.broken(found) else more


def _words(found: Rollout, before: PolicyVersion, act: Act) -> tuple[str, str]:
    """What a button says, and what it does."""
    if act == "accept":
        return "Accept", f"{STAGES[0]} % of the new sessions begin with {found.version}."
    if act == "decline":
        return "Decline", "It ends here; no session ever begins with it."
    if act == "widen":
        share = actions.next_stage(found)
        if share == STAGES[-1]:
            return "Complete: 100 %", f"All new sessions begin with {found.version} from then on."
        return f"Widen to {share} %", f"{share} % of the new sessions begin with {found.version}."
    if act == "pause":
        return "Pause", f"New sessions begin with {before} until it goes on."
    if act == "resume":
        off = [BOUNDS[name].title.lower() for name in actions.broken(found)]
        without = f", without the bound on {' and '.join(off)}" if off else ""
        return "Resume", f"It goes on at {found.share} %{without}."
    return (
        "Roll back",
        f"New sessions begin with {before} again, at once. Running ones keep theirs.",
    )
