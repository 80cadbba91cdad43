"""What no strategy may touch, decided here and nowhere else."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from compaction.context import Block
from compaction.groups import Groups

FIXED_KINDS = frozenset({"tools", "system", "memory"})


@dataclass(frozen=True, slots=True)
class Guard:
    """Answers whether a block may be replaced, or taken out, at this step.

    Protected are: tool definitions, system prompt and memory; pinned blocks and the other half of
    a pinned tool call; thinking of the newest turn, which providers want back as it was; and the
    hot cache. The hot cache is Dakou's; the rules on pins
    are ours (docs/sources.md, Dakou and Shannon). Where a summary is being written, what came
    since it was wanted (from position `limit` on) counts as hot: the span must stay the same.
    """

    groups: Groups
    limit: int | None = None
    hot: int = field(init=False)
    """Position from which on everything is hot."""

    def __post_init__(self) -> None:
        # Strategies ask for it with every block.
        object.__setattr__(self, "hot", self._hot())

    def _hot(self) -> int:
        """The last tool call, its result, and the rest.

        Where people have talked for two turns since the last tool call, the newest turn is hot
        instead, or a chat that once used a tool could never be compacted.
        """
        groups = self.groups
        last = groups.last_tool
        if last is None or last.turn < groups.turn - 1:
            hot = groups.cut_at(groups.turn_start)
        else:
            hot = groups.cut_at(last.position)
        return hot if self.limit is None else min(hot, self.limit)

    def may_replace(self, block: Block) -> bool:
        """Whether a stub may stand for this block at its place."""
        return not (
            block.pinned
            or block.kind in FIXED_KINDS
            or block.role == "system"
            or (block.tool_call is not None and block.tool_call in self.groups.pinned_calls)
            or (block.type == "thinking" and block.turn >= self.groups.turn)
            or block.position >= self.hot
        )

    def may_enter_as(self, block: Block) -> bool:
        """Whether something shorter may stand for a result from the step on at which it arrives.

        The hot cache does not count here: the model has not seen the block yet.
        """
        return not (
            block.pinned
            or block.kind in FIXED_KINDS
            or (block.tool_call is not None and block.tool_call in self.groups.pinned_calls)
        )

    def pinned_between(self, start: int, end: int) -> bool:
        """Whether a pin stands at a position in [start, end)."""
        pins = self.groups.pins
        place = bisect_left(pins, start)
        return place < len(pins) and pins[place] < end

    def may_remove(self, block: Block) -> bool:
        """Whether a block may leave its place together with the rest of its group."""
        if block.kind in FIXED_KINDS or block.role == "system" or block.position >= self.hot:
            return False
        cuts = self.groups.cuts
        start = self.groups.cut_at(block.position)
        place = bisect_left(cuts, start) + 1
        end = cuts[place] if place < len(cuts) else self.hot
        return not self.pinned_between(start, end)
