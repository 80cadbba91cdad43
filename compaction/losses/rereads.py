"""Files that an agent read again, unchanged, after they had left its context."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.context.edits import Entry


def read_again(entries: Iterable[Entry]) -> list[tuple[int, int]]:
    """Return step and tokens of each file read that shows the text of an earlier one, if no earlier
    one was in context when the model asked for it.

    `entries` are those of a run, with texts; replacements are not readings. A result born at step
    b answers the call of step b - 1.
    """
    readings = [entry for entry in entries if _is_reading(entry)]
    until: dict[str, float] = {}
    seen: set[str] = set()
    found: list[tuple[int, int]] = []
    for entry in sorted(readings, key=lambda one: one.from_step):
        block = entry.block
        if block.id not in seen and until.get(block.text, entry.from_step) < entry.from_step:
            found.append((entry.from_step, block.tokens))
        seen.add(block.id)
        stays = float("inf") if entry.to_step is None else entry.to_step
        until[block.text] = max(stays, until.get(block.text, 0))
    return found


def _is_reading(entry: Entry) -> bool:
    block = entry.block
    is_read = block.file is not None and block.file.action == "read"
    return is_read and block.type == "tool_result" and block.replaces is None and bool(block.text)
