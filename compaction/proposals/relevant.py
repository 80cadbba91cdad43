"""Choose what stays by what it has in common with the task."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.context.blocks import Block
from compaction.proposals.plan import View


def most_relevant(view: View, blocks: Iterable[Block], room: int) -> set[int]:
    """Return the positions of the groups most relevant per token that fit into a room of tokens.

    Relevant: to the first and the newest message of a person (`Mentions.relevance`). Of equal ones
    the newer stay. A group leaves or stays whole; summaries are not chosen.
    """
    view.mentions.learn(view.arrivals, view.originals)
    groups: dict[int, list[Block]] = {}
    for block in blocks:
        groups.setdefault(view.guard.groups.cut_at(block.position), []).append(block)
    found = [
        (start, sum(block.tokens for block in group), [block.position for block in group])
        for start, group in groups.items()
        if all(block.kind != "summary" for block in group)
    ]
    scores = view.mentions.relevance([places for _, _, places in found], view.guard.limit)
    ranked = [
        (score / max(tokens, 1), start, tokens, places)
        for score, (start, tokens, places) in zip(scores, found, strict=True)
    ]
    stay: set[int] = set()
    for _, _, tokens, places in sorted(ranked, reverse=True):
        if tokens <= room:
            room -= tokens
            stay.update(places)
    return stay
