"""Compactions that agents make by themselves, in the histories that they send afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from compaction.context.edits import Trigger
from sessions.importers.records import Message, Record

_BY_HAND = "<command-name>/compact</command-name>"
"""How Claude Code records, after the summary, that a person asked for it."""


def summary_from(index: int, history: Sequence[Record]) -> int | None:
    """The place of the summary with which a history goes on at `index`; None if it has none.

    The summary precedes the next reply. What an agent repeats of its setup may precede it.
    """
    places = range(index, len(history))
    until_reply = takewhile(lambda place: not _is_reply(history[place]), places)
    return next((place for place in until_reply if _is_summary(history[place])), None)


def trigger_of(index: int, history: Sequence[Record]) -> Trigger:
    """Why an agent made the summary at `index`, as far as its history says so."""
    rest = [record for record in history[index:] if isinstance(record, Message)]
    said = (str(block.get("text") or "") for message in rest for block in message.blocks)
    return "manual" if any(_BY_HAND in text for text in said) else "auto"


def _is_reply(record: Record) -> bool:
    return isinstance(record, Message) and record.role == "assistant"


def _is_summary(record: Record) -> bool:
    return isinstance(record, Message) and record.kind == "summary"
