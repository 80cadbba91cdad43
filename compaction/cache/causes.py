"""What pages say about a cache break: what changed, where, and how to avoid it."""

from __future__ import annotations

from compaction.cache.uses import Break, Cause

ADVICE: dict[Cause, str] = {
    "cold_start": "The first call of a session writes its prompt. Sessions that start with the "
    "same prefix share it.",
    "ttl": "Answer within the TTL, or write these prefixes for one hour.",
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
"""Causes that the sender, the client's configuration or a policy controls. The others are rules of
a cache or model, a rewind by a person, or unknown."""

_AGAIN = "paid again although they had been cached"
_WRITTEN: dict[Cause, str] = {
    "edit": "written again after the edit",
    "rewind": "written again after the rewind",
}


def is_avoidable(cause: str) -> bool:
    """Return whether breaks of a cause can be avoided."""
    return cause in AVOIDABLE


def advice(cause: Cause) -> str:
    """Return what to do about breaks of a cause."""
    return ADVICE[cause]


def detail(broken: Break) -> str:
    """Describe how many tokens were paid again, and from which place in the prompt."""
    said = f"{broken.rewritten:,} tokens were {_WRITTEN.get(broken.cause, _AGAIN)}"
    if broken.after is None:
        return f"{said}."
    if not broken.after:
        return f"{said}: no part of the prompt could be read."
    return f"{said}, after the first {broken.after:,}, which could still be read."
