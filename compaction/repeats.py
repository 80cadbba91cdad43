"""Repeats: which results the same call has given anew, and which dashboards a newer one follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.context import Block
from compaction.files.calls import EXTRACTORS, command_of, shell
from compaction.recitation.terminals import folder_after, named
from compaction.stubs import arguments

LONGEST = 4_000
"""Code points of an input that is compared; what asks for a state is short."""

_OPEN, _CLOSE = "<dashboard", "</dashboard>"
_ASIDE = frozenset(
    ("description", "explanation", "thought", "reason", "timeout", "timeout_ms", "security_risk",
     "task_progress", "yield_time_ms", "max_output_tokens")
)  # fmt: skip
"""Arguments that do not change what a call asks for."""

# Made once: json.dumps makes an encoder anew for each call that is not its default.
_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


@dataclass(slots=True)
class Repeats:
    """Pairs (older, newer) of positions, in order of the newer: what it was is out of date.

    Learned from originals one by one, in constant work per block. A result that failed makes
    nothing out of date and is not made so.
    """

    pairs: list[tuple[int, int]] = field(default_factory=list)
    _newest: dict[str, int] = field(default_factory=dict)
    _waiting: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, str] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Take in the next original."""
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
        """What a call asks for: tool and arguments, for a shell with the folder that it is in."""
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
    """Whether an agent put a dashboard into this message of a user."""
    by_user = block.role == "user" and block.type == "text"
    return by_user and next(_spans(block.text), None) is not None


def without_dashboards(text: str, note: str) -> str:
    """A text with a note in place of its first dashboard, and nothing in place of the others."""
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
