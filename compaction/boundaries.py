"""What to do where a topic or a task ends: whether a summary of what was is worth its price."""

from __future__ import annotations

from compaction.cache.economy import expected, pays
from compaction.plan import View
from compaction.protect import FIXED_KINDS

LARGEST = 3
"""Parts that are named where what must stay is too large (ours)."""


def history(view: View) -> int:
    """Tokens of the conversation before the newest turn, in the provider's count."""
    end = view.guard.groups.turn_start
    talk = (b for p, b in view.standing.items() if p < end and b.kind not in FIXED_KINDS)
    return view.billed(sum(block.tokens for block in talk))


def is_worth(view: View, start: int, saved: int) -> bool:
    """Whether to take `saved` tokens out from position `start` on is cheaper than to leave them.

    A cold cache is written anyway, so then it is free.
    """
    if view.cold:
        return saved > 0
    after = view.billed(view.total - view.tokens_before(start))
    return pays(expected(view.step), saved, max(after - saved, 0), view.means.rates)


def largest(view: View) -> str:
    """What takes most of what no compaction may remove, for people."""
    sizes: dict[str, int] = {}
    for block in view.standing.values():
        if not view.guard.may_remove(block):
            fixed = block.kind in FIXED_KINDS or block.role == "system"
            name = block.kind if fixed else "pinned" if block.pinned else "newest messages"
            sizes[name] = sizes.get(name, 0) + view.billed(block.tokens)
    beside = view.used - view.billed(view.total)
    if beside > 0:
        sizes["not in the log"] = beside
    ordered = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:LARGEST]
    return ", ".join(f"{name} {tokens}" for name, tokens in ordered)
