"""What pages say about a cache break: what changed, where, and how to avoid it."""

from __future__ import annotations

from compaction.cache.simulator import TTL_MS
from compaction.cache.uses import Break, Cause

ADVICE: dict[Cause, str] = {
    "cold_start": "The first call of a session writes its prompt. Sessions that start with the "
    "same prefix share it.",
    "ttl": "Request the one-hour TTL: it would have cost less in this session.",
    "model": "Each model has a cache of its own: switch at a task boundary, where the context is "
    "small.",
    "tools": "Keep the tool list and its order constant within a session.",
    "system": "Keep clocks and counters out of the system prompt.",
    "edit": "Everything after an edit is written again: make edits in batches, or when the cache "
    "is cold.",
    "rewind": "Rewinding drops what was cached after that point. Nothing to fix.",
    "look_back": "Set a breakpoint at least every 20 blocks, or keep the one of the last request.",
    "minimum": "This model does not cache a prompt this short. Nothing to fix.",
    "images": "Always keep an image in the prompt, or never send one: adding the first or removing "
    "the last changes how all messages are cached.",
    "settings": "Keep tool choice, thinking and effort constant within a session. To rule out a "
    "tool, say so in a message.",
    "thinking": "This model drops earlier thinking when a person writes. Nothing to fix.",
    "restart": "A restarted client builds a new prompt: continue in the running one, and keep "
    "its start time out of the system prompt.",
    "steps": "This cache stores whole increments only. Nothing to fix.",
    "search": "After a search by the provider, what it cached differs from what the next call "
    "sends. Nothing to fix.",
    "unexplained": "The log does not show why: the provider may have dropped the prefix, or "
    "something changed that the log leaves out.",
}
"""What to do about each cause."""

AVOIDABLE: frozenset[Cause] = frozenset(
    {"ttl", "model", "tools", "system", "settings", "images", "restart", "look_back", "edit"}
)
"""Causes that the sender, the client's configuration or a policy controls; an expired TTL only
where `why_ttl_stays` is empty. The others are rules of a cache or model, a rewind by a person, or
unknown."""

NO_ADVICE = "Nothing to fix."
"""What to do about an expired TTL that is not avoidable."""

VENDOR_ADVICE = (
    "The agent's product decides when it edits, and no TTL keeps what it removed. To decide that "
    "yourself, manage the session with a policy."
)
"""What to do about edits that a vendor's product made, outside our policies."""

_AGAIN = "paid again although they had been cached"
_WRITTEN: dict[Cause, str] = {
    "edit": "written again after the edit",
    "rewind": "written again after the rewind",
}


def is_avoidable(cause: str, vendor_edit: str = "") -> bool:
    """Return whether breaks of a cause can be avoided; an edit by the agent's product cannot."""
    return cause in AVOIDABLE and not (cause == "edit" and vendor_edit)


def hour_keeps(idle: int | None, ttl: int | None) -> bool:
    """Return whether an hour's TTL would have kept what a request for five minutes lost after an
    idle of so many ms."""
    return ttl == TTL_MS["5m"] and (idle or 0) <= TTL_MS["1h"]


def why_ttl_stays(
    idle: int | None, ttl: int | None, hour_saved: int | None, *, cut: bool = False
) -> str:
    """Say why an expired TTL (ms, as `idle`) is not avoidable; empty if it is. `cut` as in `Break`.

    `hour_saved` is what an hour's TTL would have saved in the whole session, None if unknown: a
    session has one TTL for all of its writes, so all its breaks are judged by it.
    """
    if cut:
        return "the context was edited at this step, and no TTL keeps what left it"
    if (idle or 0) > TTL_MS["1h"]:
        return f"no TTL keeps a cache for {_whole_hours(idle or 0)}"
    if not hour_keeps(idle, ttl):
        return "no five-minute TTL was requested"
    if hour_saved is None:
        return "an hour's TTL is not known to cost less in this session"
    return "" if hour_saved > 0 else "an hour's TTL would have cost more in this session"


def _whole_hours(idle: int) -> str:
    hours, minutes = divmod(idle // 60_000, 60)
    return f"{hours} h" if hours > 1 else f"{hours} h {minutes} m"


def title(broken: Break, vendor_edit: str = "") -> str:
    """Name a cause. `vendor_edit` names the edit if the agent's product made it."""
    return (broken.cause == "edit" and vendor_edit) or str(broken)


def advice(cause: Cause, vendor_edit: str = "") -> str:
    """Return what to do about breaks of a cause; `vendor_edit` as for `title`."""
    return VENDOR_ADVICE if cause == "edit" and vendor_edit else ADVICE[cause]


def sentence(broken: Break, cost: str = "", vendor_edit: str = "") -> str:
    """Say a break in one sentence: cause, tokens, `cost` if it is given in words, and whether it
    can be avoided."""
    name = title(broken, vendor_edit)
    paid = f"{broken.rewritten:,} tokens written again{f' ({cost})' if cost else ''}"
    if broken.cause == "unexplained":
        return f"Unexplained: {paid}."
    can = "avoidable" if is_avoidable(broken.cause, vendor_edit) else "not avoidable"
    return f"{name[0].upper()}{name[1:]}: {paid}, {can}."


def detail(broken: Break) -> str:
    """Describe how many tokens were paid again, and from which place in the prompt."""
    paid = f"{broken.rewritten:,} tokens were {_WRITTEN.get(broken.cause, _AGAIN)}"
    if broken.after is None:
        return f"{paid}."
    if not broken.after:
        return f"{paid}: no part of the prompt could be read."
    return f"{paid}, after the first {broken.after:,}, which could still be read."
