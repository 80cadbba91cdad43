"""Which blocks belong together, learned block by block: responses, call pairs, failures."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compaction.context.blocks import Block

_CD = re.compile(r"^\s*cd\s+\S+\s*(?:&&|;)\s*")
_COMMANDS = ("command", "cmd", "script", "code")
_RUNS = frozenset({"run", "exec", "-m"})
"""Second words after which a third one says what runs."""


def failure_key(use: Block) -> str:
    """Return what has to succeed for a failed tool call to count as resolved.

    The same tool on the same path; for a shell, a command that begins with the same two words, or
    three if they only name a runner (`npm run lint`); otherwise the same tool with the same input.
    """
    if use.file is not None:
        return f"{use.tool}|{use.file.path}"
    try:
        given = json.loads(use.text)
    except ValueError:
        given = None
    if isinstance(given, dict):
        for name in _COMMANDS:
            command = given.get(name)
            if isinstance(command, list):
                command = " ".join(str(word) for word in command[-1:])
            if isinstance(command, str):
                words = _CD.sub("", command).split()
                named = 3 if words[1:2] and words[1] in _RUNS else 2
                return f"{use.tool}|{' '.join(words[:named])}"
    return f"{use.tool}|{use.sha}"


@dataclass(slots=True)
class Groups:
    """The groups among a session's originals, updated in constant amortized time per block.

    `cuts` are the positions, ascending, before which a context may be cut without splitting a
    response, message or call pair. `uses` holds the tool_use of each tool call, `results` the
    positions of its results, `responses` the positions of each model response. `mended` lists
    positions of failed results (and of their calls) once the same operation has succeeded.
    """

    cuts: list[int] = field(default_factory=list)
    uses: dict[str, Block] = field(default_factory=dict)
    results: dict[str, list[int]] = field(default_factory=dict)
    responses: dict[str, list[int]] = field(default_factory=dict)
    open_failures: set[int] = field(default_factory=set)
    mended: list[int] = field(default_factory=list)
    pins: list[int] = field(default_factory=list)
    pinned_calls: set[str] = field(default_factory=set)
    turn: int = 0
    turn_start: int = 0
    last_tool: Block | None = None
    _message: tuple[int, int] = (-1, -1)
    _failed: dict[str, list[int]] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """Add the next original; positions must ascend."""
        tie = block.position
        if block.message == self._message[0]:
            tie = self._message[1]
        else:
            self._message = (block.message, block.position)
        if block.call is not None:
            members = self.responses.setdefault(block.call, [])
            members.append(block.position)
            tie = min(tie, members[0])
        if block.tool_call is not None:
            tie = min(tie, self._pair(block, block.tool_call))
        self.cuts.append(block.position)
        while self.cuts[-1] > tie:
            self.cuts.pop()
        if block.turn > self.turn:
            self.turn, self.turn_start = block.turn, block.position
        if block.pinned:
            self.set_pinned(block)

    def set_pinned(self, block: Block) -> None:
        """Record that a block is now pinned, or no longer is."""
        place = bisect_left(self.pins, block.position)
        if block.pinned:
            self.pins.insert(place, block.position)
        else:
            del self.pins[place]
        call = block.tool_call
        if call is None:
            return
        use = self.uses.get(call)
        members = {*self.results.get(call, ()), *((use.position,) if use is not None else ())}
        if block.pinned or not members.isdisjoint(self.pins):
            self.pinned_calls.add(call)
        else:
            self.pinned_calls.discard(call)

    def _pair(self, block: Block, call: str) -> int:
        if block.type == "tool_use":
            self.uses[call] = self.last_tool = block
            return block.position
        use = self.uses.get(call)
        self.results.setdefault(call, []).append(block.position)
        if use is None:
            return block.position
        key = failure_key(use)
        if block.error:
            self._failed.setdefault(key, []).extend((use.position, block.position))
            self.open_failures.update((use.position, block.position))
        elif key in self._failed:
            places = self._failed.pop(key)
            self.open_failures.difference_update(places)
            self.mended.extend(places)
        return use.position

    def cut_at(self, position: int) -> int:
        """Return the last position at or before `position` where a context may be cut."""
        found = bisect_right(self.cuts, position)
        return self.cuts[found - 1] if found else position

    def companions(self, blocks: Iterable[Block]) -> set[int]:
        """Return the positions of all originals that share a call pair or response with any of
        these blocks.

        Linear in the blocks and what is returned: a response may have thousands of blocks.
        """
        places: set[int] = set()
        responses: set[str | None] = set()
        calls: set[str | None] = set()
        for block in blocks:
            responses.add(block.call)
            calls.add(block.tool_call)
        for call in calls:
            if call is None:
                continue
            places.update(self.results.get(call, ()))
            if (use := self.uses.get(call)) is not None:
                places.add(use.position)
                responses.add(use.call)
        for response in responses:
            if response is not None:
                places.update(self.responses.get(response, ()))
        return places

    def unmended(self, originals: Mapping[int, Block]) -> set[int]:
        """Return the positions of unresolved failures and of everything grouped with them.

        That includes the other calls of the same response, and their results.
        """
        kept: set[int] = set()
        found = set(self.open_failures)
        while found:
            kept |= found
            found = self.companions(originals[place] for place in found) - kept
        return kept
