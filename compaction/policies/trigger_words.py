"""What a trigger is called where people read it, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compaction.edits import Trigger


class Words(NamedTuple):
    """A name of a few words, and a sentence."""

    name: str
    meaning: str


WORDS: Mapping[Trigger, Words] = {
    "batch": Words("a batch was full", "As many were ripe as leave together."),
    "pays": Words(
        "it pays",
        "By the prices of the model, the smaller prompts save more than writing the cache anew "
        "costs.",
    ),
    "cold": Words(
        "the cache was cold", "Nothing was cached any more, so nothing had to be written twice."
    ),
    "window": Words("the window was full", "The prompt came to the policy's share of the window."),
    "budget": Words("the budget was full", "The conversation came to the policy's budget."),
    "new_topic": Words("a new topic", "A person began something else."),
    "task_done": Words(
        "a task was done", "The todo list was worked off, or the agent said that it is done."
    ),
    "request": Words("asked for", "A person or the agent asked for it."),
    "manual": Words("by hand", "Somebody told the agent to, as its log says."),
    "undo": Words("undo", "An earlier revision was taken back."),
    "auto": Words("by the agent", "The agent did it by itself, as its log says."),
    "clear": Words("cleared", "The agent dropped old tool results, as its log says."),
    "rewind": Words("rewind", "The history went back to an earlier message, as the log says."),
    "setup": Words("new set-up", "Another system prompt or other tools came with a request."),
    "pin": Words("pin", "Somebody pinned what had left, so it stands again."),
    "entry": Words("at entry", "What is shortened had not been seen by the model."),
    "unknown": Words("unknown", "The log does not say why."),
}

_BY_NAME: Mapping[str, Words] = {str(trigger): said for trigger, said in WORDS.items()}


def words(trigger: str) -> Words:
    """Those of a stored trigger; its own name where a later release made it."""
    return _BY_NAME.get(trigger) or Words(trigger.replace("_", " "), "")
