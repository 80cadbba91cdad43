"""The verdict on a team's cache, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.actions.web.verdicts import EventVerdict, counted, listed
from sessions.figures import at_least, finely, money
from sessions.models.cache.causes import CauseSums
from sessions.models.web.sums import Sums

QUIET = 0.01
"""Share of spend up to which avoidable breaks are no reason to act (our choice)."""

NOUNS = {
    "ttl": "TTL",
    "model": "model switches",
    "tools": "changed tools",
    "system": "a changing system prompt",
    "edit": "context edits",
    "look_back": "distant breakpoints",
    "images": "images",
    "settings": "changed settings",
    "restart": "client restarts",
}
"""Avoidable causes after "by"."""


def verdict(whole: Sums, causes: Sequence[CauseSums]) -> EventVerdict:
    """What the breaks of a range came to: how much of its spend they cost, and mostly why."""
    of = whole.of
    if not of["usage"]:
        return EventVerdict(
            "neutral",
            "Unknown: no session in this range reports cache use.",
            "Breaks and costs come from usage as providers report it.",
        )
    can = [one for one in causes if one.avoidable]
    many = sum(one.breaks for one in can)
    rest = _rest(of["unexplained"], causes)
    if not many:
        sessions = counted(of["usage"], "session")
        return EventVerdict("good", f"No avoidable cache breaks in {sessions}.", rest)
    top = f", {'most ' if len(can) > 1 else ''}by {NOUNS[can[0].kind]}"
    breaks = counted(many, "cache break")
    if not of["split"]:
        return EventVerdict("neutral", f"{breaks} could be avoided{top}. Cost unknown.", rest)
    paid = at_least(of["avoidable"], bound=bool(of["avoidable_short"]))
    spent = at_least(of["cost"], bound=bool(of["short"]))
    share = f"{finely(of['avoidable'] / of['cost'])} of spend." if of["cost"] else ""
    sentence = f"{paid} of {spent} avoidable: {breaks}{top}."
    bad = of["avoidable"] > QUIET * of["cost"]
    return EventVerdict("bad" if bad else "good", sentence, f"{share} {rest}".strip())


def _rest(unexplained: int, causes: Sequence[CauseSums]) -> str:
    """The breaks that are not avoidable, or not explained."""
    parts = []
    if unexplained:
        parts.append(f"{money(unexplained)} more is unexplained")
    fixed = sum(one.microusd or 0 for one in causes if one.known and not one.avoidable)
    if fixed:
        parts.append(f"{money(fixed)} more could not be avoided")
    said = listed(parts)
    return f"{said[0].upper()}{said[1:]}." if said else ""
