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
    "manual": Words("requested compaction", "A person asked the agent for it."),
    "undo": Words("undo", "An earlier revision was undone."),
    "auto": Words(
        "automatic compaction",
        "The agent made it, usually because its window was nearly full.",
    ),
    "clear": Words("cleared tool results", "Old tool results were dropped, according to the log."),
    "rewind": Words("rewind", "The session went back to an earlier message, according to its log."),
    "setup": Words("new setup", "A request had a new system prompt or other tools."),
    "pin": Words("pin", "A person pinned a block that had left, so it is back."),
    "entry": Words("on entry", "Shortened on arrival, before the model had seen it."),
    "unknown": Words("compaction", "The log does not say why."),
}

VENDORS: Mapping[str, str] = {"claude-code": "Claude Code", "codex": "Codex", "pi": "pi"}
"""Products whose own edits logs show, by the agent that importers store."""

_BY_VENDOR: Mapping[str, str] = {
    "auto": "automatic compaction by {}",
    "manual": "compaction asked for in {} (/compact)",
    "clear": "tool results cleared by {}",
    "unknown": "compaction by {}",
}
_BY_NAME: Mapping[str, Words] = {str(trigger): said for trigger, said in WORDS.items()}


def words(trigger: str, agent: str = "") -> Words:
    """Return the words for a stored trigger; its own name if it is from a later release. `agent`
    is the session's: edits by its product are named after it."""
    found = _BY_NAME.get(trigger) or Words(trigger.replace("_", " "), "")
    if agent not in VENDORS or trigger not in _BY_VENDOR:
        return found
    return found._replace(name=_BY_VENDOR[trigger].format(VENDORS[agent]))


def vendor_edit(trigger: str, agent: str) -> str:
    """The name of an edit that a vendor's product made; empty for others."""
    return words(trigger, agent).name if trigger in _BY_VENDOR else ""
