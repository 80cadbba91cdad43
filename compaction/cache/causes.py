"""What a page says of a cache break: what changed, where, and what to do about it."""

from __future__ import annotations

from compaction.cache.simulator import Break, Cause

ADVICE: dict[Cause, str] = {
    "cold_start": "The first call of a session writes its prompt; sessions that begin alike share "
    "what stands first.",
    "lifetime": "Answer within the lifetime, or write these prefixes for one hour.",
    "model": "Each model has a cache of its own: switch at a task boundary, where the context is "
    "small.",
    "tools": "Keep the list of tools and its order the same through a session.",
    "system": "Keep clocks and counters out of the system prompt.",
    "edit": "An edit rewrites what follows it: make edits in batches, or when the cache is cold.",
    "rewind": "Going back drops what was cached after that point; nothing to mend.",
    "look_back": "Set a breakpoint at least every 20 blocks, or keep that of the request before.",
    "minimum": "A prompt this short is not cached by this model; nothing to mend.",
    "images": "Keep an image in the prompt, or never send one: the first and the last change how "
    "all messages are cached.",
    "settings": "Keep tool choice, thinking and effort the same through a session; say what should "
    "not be used in words.",
    "thinking": "This model drops earlier thinking when a person writes; nothing to mend.",
    "restart": "A client that is started anew builds its prompt anew: go on in the running one, "
    "and keep the time of its start out of the system prompt.",
    "steps": "This cache keeps whole steps only; nothing to mend.",
    "unexplained": "Nothing that the log shows accounts for it: the provider may have dropped the "
    "prefix, or something changed that the log leaves out.",
}
"""One sentence for each cause."""

AVOIDABLE: frozenset[Cause] = frozenset(
    {"lifetime", "model", "tools", "system", "settings", "images", "restart", "look_back", "edit"}
)
"""Causes that somebody decides: whoever sends the request, configures the client, or edits. The
others are rules of a cache or model, a way back that a person took, or not known."""

_AGAIN = "paid again that had been cached"
_WRITTEN: dict[Cause, str] = {
    "edit": "written anew after the edit",
    "rewind": "written anew after the session went back",
}


def is_avoidable(cause: str) -> bool:
    """Whether somebody can avoid breaks of a cause."""
    return cause in AVOIDABLE


def advice(cause: Cause) -> str:
    """What to do about breaks of a cause."""
    return ADVICE[cause]


def detail(broken: Break) -> str:
    """How many tokens were paid again, and behind which place of the prompt."""
    said = f"{broken.rewritten:,} tokens were {_WRITTEN.get(broken.cause, _AGAIN)}"
    if broken.after is None:
        return f"{said}."
    if not broken.after:
        return f"{said}: nothing of the prompt could be read."
    return f"{said}, behind the first {broken.after:,} that could still be read."
