"""The fix that the dashboard names first, in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sessions.actions.lab.choices import USUAL_SESSIONS
from sessions.figures import at_least, money
from sessions.models.web.periods import WEEK
from sessions.models.web.sums import Sums
from sessions.views.dashboard.fixes import OPEN, SIMULATE
from sessions.views.dashboard.ranking import Fix

KNOWN_BY: dict[str, str] = {
    "estimated": "estimated from the usage of",
    "simulated": "simulated on",
}
"""How an amount is known, before the sessions that it was found in."""

BUTTONS: dict[str, str] = {
    "Show breaks": "lists these cache breaks, and changes nothing",
    "Open tools": "shows the tools and when they changed, and changes nothing",
    "Change TTL": "opens the policy editor with this value; sessions use it once you save it and "
    "roll it out",
    "Keep longer": "opens the policy editor with a value; sessions use it once you save it and "
    "roll it out",
    "See which": "lists these tools, and changes nothing",
    SIMULATE: f"starts it on the newest {USUAL_SESSIONS} sessions with lost facts, and shows it on "
    "Policies; no session changes",
    OPEN: "shows the simulation that this comes from; a rollout is started there",
}
"""What a button does."""

ELSEWHERE = "opens the policy, and changes nothing"
"""What a button does that would lead to the editor, for who may not edit or where the policy has no
such setting."""

FEWEST = 2
"""Weeks from which dollars a week are said."""


def first_line(found: Sequence[Fix], whole: Sums, weeks: float) -> str:
    """Return what to do first, its dollars of those spent, how they are known, what it forgets, and
    what its button does; empty without a fix that saves. `weeks` is how long the sessions are, 0 if
    nothing is said by the week."""
    first = found[0] if found else None
    if first is None:
        return ""
    if first.button == SIMULATE:
        return (
            f"First: simulate policies on these sessions. What they save is unknown until then. "
            f"{_button(first)}"
        )
    if not first.microusd or first.microusd < 0:
        return ""
    bound = "at most " if first.at_most else "at least " if first.at_least else ""
    cost, priced = first.spent or (whole.of["cost"], whole.of["priced"])
    least = not first.spent and bool(whole.of["short"])
    spent = f"{at_least(cost, bound=least)} spent in {_count(priced)} with a known cost"
    each = f" ({money(round(first.microusd / weeks))} a week)" if weeks and not first.spent else ""
    known = first.basis
    if first.sessions and first.basis in KNOWN_BY:
        known = f"{KNOWN_BY[first.basis]} {_count(first.sessions)}"
    more = _more(first.microusd, found[1:])
    known += _loses(first, said=bool(more))
    title = first.title[:1].lower() + first.title[1:]
    reason = ", because it loses nothing" if more else ""
    return (
        f"First{reason}: {title}. Saves {bound}{money(first.microusd)} of the {spent}{each}, "
        f"{known}. {more}{_button(first)}"
    ).strip()


def _loses(first: Fix, *, said: bool) -> str:
    """What is lost by a fix, after how its amount is known; `said`: that it loses nothing."""
    if first.forgets is None:
        return "; whether it keeps what is needed later is unknown"
    if first.forgets:
        return f", and keeps {first.forgets * 100:.1f} points less of what is needed later"
    return "" if said else ", and loses nothing"


def _more(microusd: int, others: Sequence[Fix]) -> str:
    """What a fix below saves more, and what it loses for that; empty if none saves more."""
    most = next((one for one in others if one.forgets and (one.microusd or 0) > microusd), None)
    if most is None:
        return ""
    return (
        f"“{most.title}” below saves more, {money(most.microusd)} as simulated, but keeps "
        f"{(most.forgets or 0) * 100:.1f} points less of what is needed later. "
    )


def _button(first: Fix) -> str:
    edits = first.button in ("Change TTL", "Keep longer") and "?set=" not in first.url
    does = ELSEWHERE if edits else BUTTONS.get(first.button, "")
    return f"“{first.button}” {does}." if does else ""


def weeks_in(days: Collection[int]) -> float:
    """How many weeks these days span; 0 if fewer than `FEWEST`, or if a week is without any."""
    ordered = sorted(days)
    gaps = (after - day - 1 for day, after in zip(ordered, ordered[1:], strict=False))
    if not ordered or any(gap >= WEEK for gap in gaps):
        return 0
    weeks = (ordered[-1] - ordered[0] + 1) / WEEK
    return weeks if weeks >= FEWEST else 0


def _count(many: int) -> str:
    return f"{many:,} session{'' if many == 1 else 's'}"
