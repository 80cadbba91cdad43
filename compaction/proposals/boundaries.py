"""At the end of a topic or task: decide whether a summary of the history is worth its price."""

from __future__ import annotations

from compaction.cache.economy import expected, pays
from compaction.proposals.plan import View
from compaction.proposals.protect import FIXED_KINDS

LARGEST = 3
"""Maximum parts named if the fixed part is too large (our choice)."""


def history(view: View) -> int:
    """Return the tokens of the conversation before the newest turn, in the provider's count."""
    end = view.guard.groups.turn_start
    talk = (b for p, b in view.standing.items() if p < end and b.kind not in FIXED_KINDS)
    return view.billed(sum(block.tokens for block in talk))


def is_worth(view: View, start: int, saved: int) -> bool:
    """Return whether removing `saved` tokens from position `start` on is cheaper than keeping them.

    Always with a cold cache, which is rewritten anyway.
    """
    if view.cold:
        return saved > 0
    after = view.billed(view.total - view.tokens_before(start))
    return pays(expected(view.step), saved, max(after - saved, 0), view.means.rates)


def largest(view: View) -> str:
    """Describe the largest parts that no compaction may remove."""
    sizes: dict[str, int] = {}
    for block in view.standing.values():
        if not view.guard.may_remove(block):
            fixed = block.kind in FIXED_KINDS or block.role == "system"
            name = block.kind if fixed else "pinned" if block.pinned else "newest messages"
            sizes[name] = sizes.get(name, 0) + view.billed(block.tokens)
    hidden = view.used - view.billed(view.total)
    if hidden > 0:
        sizes["not in the log"] = hidden
    ordered = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:LARGEST]
    return ", ".join(f"{name} {tokens}" for name, tokens in ordered)
