"""Kimi's history: the messages in context, which compactions and undoing refer to by number."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.importers.openai_wire import content_blocks
from sessions.importers.records import Json
from sessions.importers.wire import string, text_block

SUMMARY = "compaction_summary"
"""The origin of a summary."""

_INSERTED = "injection"
"""The origin of what the client inserts; undoing leaves it."""


@dataclass(slots=True, eq=False)
class KimiMessage:
    """A message of the history. A response is one, though each of its parts is a record of ours;
    `keys` are theirs."""

    origin: str
    keys: list[str] = field(default_factory=list)


def kept_by(compaction: dict[str, Json], standing: list[KimiMessage]) -> list[KimiMessage]:
    """The messages that stay: as many prompts as are stated, the first and the last ones; in older
    logs, all after those that are counted."""
    count, prompts = compaction.get("compactedCount"), compaction.get("keptUserMessageCount")
    if isinstance(prompts, int):
        head = compaction.get("keptHeadUserMessageCount")
        first = head if isinstance(head, int) else 0
        asked = [one for one in standing if one.origin == "user"]
        last = len(asked) - (prompts - first)
        return [one for at, one in enumerate(asked) if at < first or at >= last]
    return standing[count:] if isinstance(count, int) and count > 0 else []


def without_last(
    standing: list[KimiMessage], prompts: int
) -> tuple[list[KimiMessage], list[KimiMessage]]:
    """What stays when so many prompts are taken back with all that followed, and what goes. No
    summary goes, nor what precedes it."""
    begin = len(standing)
    while prompts > 0 and begin and standing[begin - 1].origin != SUMMARY:
        begin -= 1
        prompts -= standing[begin].origin == "user"
    after = standing[begin:]
    inserted = [one for one in after if one.origin == _INSERTED]
    return [*standing[:begin], *inserted], [one for one in after if one.origin != _INSERTED]


def sent_result(result: dict[str, Json]) -> Json:
    """The content of a tool's result as Kimi CLI sends it: its message in a tag, and the output."""
    message, output = string(result.get("message")), result.get("output")
    if not message:
        return output
    failed = "ERROR: " if result.get("is_error") else ""
    return [text_block(f"<system>{failed}{message}</system>"), *content_blocks(output)]
