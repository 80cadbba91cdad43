"""Display names and explanations of triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compaction.context.edits import Trigger


class Words(NamedTuple):
    """A short name, and a sentence."""

    name: str
    meaning: str


WORDS: Mapping[Trigger, Words] = {
    "batch": Words("batch full", "Enough blocks were ripe to offload them together."),
    "pays": Words(
        "it pays",
        "At the model's prices, smaller prompts save more than rewriting the cache costs.",
    ),
    "cold": Words("cache cold", "The cache had expired, so nothing had to be written twice."),
    "window": Words("window full", "The prompt reached the policy's share of the window."),
    "budget": Words("budget full", "The conversation reached the policy's budget."),
    "new_topic": Words("new topic", "A person started a new topic."),
    "task_done": Words(
        "task done", "The to-do list was completed, or the agent reported that it is done."
    ),
    "request": Words("requested", "A person or the agent requested it."),
    "manual": Words("by hand", "A person asked the agent to compact, according to its log."),
    "undo": Words("undo", "An earlier revision was undone."),
    "auto": Words(
        "the agent's own compaction", "The agent compacted automatically, according to its log."
    ),
    "clear": Words("cleared", "The agent dropped old tool results, according to its log."),
    "rewind": Words("rewind", "The session went back to an earlier message, according to its log."),
    "setup": Words("new setup", "A request had a new system prompt or other tools."),
    "pin": Words("pin", "A person pinned a block that had left, so it is back."),
    "entry": Words("on entry", "Shortened on arrival, before the model had seen it."),
    "unknown": Words("unknown", "The log does not say why."),
}

_BY_NAME: Mapping[str, Words] = {str(trigger): said for trigger, said in WORDS.items()}


def words(trigger: str) -> Words:
    """Return the words for a stored trigger; its own name if it is from a later release."""
    return _BY_NAME.get(trigger) or Words(trigger.replace("_", " "), "")
