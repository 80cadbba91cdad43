"""Repeats: results that the same call has given again, and dashboards that a newer one replaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.context.stubs import arguments
from compaction.seen.calls import EXTRACTORS, command_of, shell
from compaction.seen.terminals import folder_after, named

LONGEST = 4_000
"""Maximum code points of an input to compare; calls that query a state are short."""

_OPEN, _CLOSE = "<dashboard", "</dashboard>"
_ASIDE = frozenset(
    ("description", "explanation", "thought", "reason", "timeout", "timeout_ms", "security_risk",
     "task_progress", "yield_time_ms", "max_output_tokens")
)  # fmt: skip
"""Arguments that do not change what a call asks for."""

# Built once: json.dumps builds a new encoder for each call with other than its defaults.
_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


@dataclass(slots=True)
class Repeats:
    """Pairs (older, newer) of positions, ordered by the newer: the older result is out of date.

    Learned from originals one by one, in constant work per block. A failed result neither outdates
    others nor becomes outdated.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    _newest: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, str] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Add the next original."""
        if block.type == "tool_use":
            if block.tool_call is not None and len(block.text) <= LONGEST:
                self._waiting[block.tool_call] = self._key(block)
        elif block.type == "tool_result":
            key = self._waiting.pop(block.tool_call or "", "")
            if key and not block.error:
                self._again(key, block.position)
        elif is_dashboard(block):
            self._again(_OPEN, block.position)

    def _again(self, key: str, position: int) -> None:
        if key in self._newest:
            self.pairs.append((self._newest[key], position))
        self._newest[key] = position

    def _key(self, use: Block) -> str:
        """Identify what a call asks for: tool and arguments; for a shell, also the folder."""
        tool = (use.tool or "").lower().rsplit("__", 1)[-1]
        given = arguments(use)
        if given is None:
            return f"{tool}|{use.text}"
        asked = {name: value for name, value in given.items() if name not in _ASIDE}
        command = command_of(given) if EXTRACTORS.get(tool) is shell else None
        where = ""
        if command is not None:
            terminal = named(given) or tool
            where = self._folders.get(terminal, "")
            self._folders[terminal] = folder_after(given, command, where)
        return f"{tool}|{where}|{_sorted(asked)}"


def is_dashboard(block: Block) -> bool:
    """Return whether an agent put a dashboard into this user message."""
    by_user = block.role == "user" and block.type == "text"
    return by_user and next(_spans(block.text), None) is not None


def without_dashboards(text: str, note: str) -> str:
    """Replace the first dashboard of a text by a note, and remove the others."""
    rest: list[str] = []
    place = 0
    for start, end in _spans(text):
        rest.append(text[place:start] + ("" if rest else note))
        place = end
    return "".join([*rest, text[place:]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    while True:
        start = text.find(_OPEN, place)
        end = text.find(_CLOSE, start) if start >= 0 else -1
        if end < 0:
            return
        place = end + len(_CLOSE)
        yield start, place
