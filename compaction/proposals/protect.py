"""Which blocks no strategy may touch."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.context.groups import Groups

FIXED_KINDS = frozenset({"tools", "system", "memory"})


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides whether a block may be replaced or removed at this step.

    Protected are tool definitions, system prompt and memory; pinned blocks and the other half of a
    pinned tool call; thinking of the newest turn, which providers require unchanged; and the hot
    cache. The hot cache is Dakou's; the rules on pins are ours (docs/sources.md, Dakou and
    Shannon). While a summary is pending, everything since it was wanted (from position `limit` on)
    counts as hot, so that the span stays the same.
    """

    groups: Groups
    limit: int | None = None
    hot: int = field(init=False)
    """The position from which everything is hot."""

    def __post_init__(self) -> None:
        # Computed once: strategies read it for every block.
        object.__setattr__(self, "hot", self._hot())

    def _hot(self) -> int:
        """Return the position of the last tool call, or of the newest turn.

        The newest turn is hot instead if two turns have passed since the last tool call; otherwise
        a chat that once used a tool could never be compacted.
        """
        groups = self.groups
        last = groups.last_tool
        if last is None or last.turn < groups.turn - 1:
            hot = groups.cut_at(groups.turn_start)
        else:
            hot = groups.cut_at(last.position)
        return hot if self.limit is None else min(hot, self.limit)

    def may_replace(self, block: Block) -> bool:
        """Return whether a stub may replace this block."""
        return not (
            block.pinned
            or block.kind in FIXED_KINDS
            or block.role == "system"
            or (block.tool_call is not None and block.tool_call in self.groups.pinned_calls)
            or (block.type == "thinking" and block.turn >= self.groups.turn)
            or block.position >= self.hot
        )

    def may_enter_as(self, block: Block) -> bool:
        """Return whether something shorter may replace a result on arrival.

        The hot cache does not count here, because the model has not seen the block yet.
        """
        return not (
            block.pinned
            or block.kind in FIXED_KINDS
            or (block.tool_call is not None and block.tool_call in self.groups.pinned_calls)
        )

    def pinned_between(self, start: int, end: int) -> bool:
        """Return whether a pin is at a position in [start, end)."""
        pins = self.groups.pins
        place = bisect_left(pins, start)
        return place < len(pins) and pins[place] < end

    def may_remove(self, block: Block) -> bool:
        """Return whether a block may be removed together with the rest of its group."""
        if block.kind in FIXED_KINDS or block.role == "system" or block.position >= self.hot:
            return False
        cuts = self.groups.cuts
        start = self.groups.cut_at(block.position)
        place = bisect_left(cuts, start) + 1
        end = cuts[place] if place < len(cuts) else self.hot
        return not self.pinned_between(start, end)
