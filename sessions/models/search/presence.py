"""Where blocks are at the end of a run: in the context, behind a replacement, or lost."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from uuid import UUID

from compaction.context.wire import decode
from sessions.models.record.messages import Block
from sessions.models.record.revisions import Entry, Replacement, Run
from sessions.models.record.values import block_id, readable
from sessions.models.search.search_words import searched_text

LONGEST_CHAIN = 20
"""Replacements of replacements that are followed."""

State = Literal["in_context", "named", "retrievable", "lost", "left", "ended"]


class BlockState(NamedTuple):
    """How a block stands at the end of a run.

    `named`: not itself, but a replacement that stands holds what was looked for. `retrievable`: a
    replacement that stands refers to it. `lost`: neither. `left`: it was taken back, as by a
    rewind. `ended`: it is a replacement that itself was replaced or undone. `step` is the first
    step without the block; if it is lost, the first at which nothing held it any more. None in
    context.
    """

    state: State
    step: int | None


IN_CONTEXT = BlockState("in_context", None)

_Key = tuple[bool, int]
"""A replacement's or an original's primary key, and whether it is a replacement."""


@dataclass(slots=True)
class _Successors:
    """A block and what followed it at its place. `ends` is the first step without each; None if it
    stands."""

    block: Block
    run: UUID
    holders: list[_Key] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)
    edited: bool = False

    @property
    def open(self) -> bool:
        return len(self.ends) < len(self.holders) <= LONGEST_CHAIN


def presences(
    team: UUID, blocks: Sequence[Block], runs: dict[UUID, Run], holds: Callable[[str], bool]
) -> dict[int, BlockState]:
    """Where blocks of a team are at the end of the runs of their sessions, by block.

    `holds` says whether a replacement's text holds what was looked for. Blocks need their messages.
    """
    chains = [
        _Successors(block, runs[block.session_id].pk, [(False, block.pk)])
        for block in blocks
        if block.session_id in runs
    ]
    while waiting := [chain for chain in chains if chain.open]:
        _follow(waiting)
    followers = {key for chain in chains for key in chain.holders[1:]}
    refs, texts = _read(team, followers)
    found = {block.pk: IN_CONTEXT for block in blocks}
    for chain in chains:
        found[chain.block.pk] = _judged(chain, refs, texts, holds)
    return found


def _follow(chains: Iterable[_Successors]) -> None:
    """Extend each chain by one: how long its last holder stood, and what replaced it."""
    wanted = {(chain.run, chain.holders[-1]) for chain in chains}
    runs = {run for run, _ in wanted}
    latest: dict[tuple[UUID, _Key], Entry] = {}
    for column, replaced in (("block_id", False), ("replacement_id", True)):
        keys = [pk for _, (is_replacement, pk) in wanted if is_replacement == replaced]
        rows = Entry.objects.filter(run__in=runs, **{f"{column}__in": keys})
        for entry in rows.select_related("closed_by").order_by("from_step", "pk"):
            latest[entry.run_id, (replaced, getattr(entry, column))] = entry
    for chain in chains:
        stay = latest.get((chain.run, chain.holders[-1]))
        chain.ends.append(stay.to_step if stay else None)
        edit = stay.closed_by if stay else None
        if edit is None:
            continue
        chain.edited = True
        if edit.replacement_id is not None:
            chain.holders.append((True, edit.replacement_id))
        elif edit.summary_id is not None:
            chain.holders.append((False, edit.summary_id))


def _read(
    team: UUID, keys: Collection[_Key]
) -> tuple[dict[_Key, Collection[str]], dict[_Key, str]]:
    """What replacements and summaries refer to, and their texts."""
    replacements = Replacement.objects.in_bulk([pk for is_one, pk in keys if is_one])
    summaries = Block.objects.in_bulk([pk for is_one, pk in keys if not is_one])
    rows: dict[_Key, Replacement | Block] = {(True, pk): one for pk, one in replacements.items()}
    rows |= {(False, pk): one for pk, one in summaries.items()}
    data = readable(team, [row.sha for row in rows.values()])
    texts = {
        key: searched_text(decode(data[row.sha])) for key, row in rows.items() if row.sha in data
    }
    refs = {(True, pk): row.refs for pk, row in replacements.items()}
    return refs, texts


def _judged(
    chain: _Successors,
    refs: dict[_Key, Collection[str]],
    texts: dict[_Key, str],
    holds: Callable[[str], bool],
) -> BlockState:
    first = chain.ends[0]
    if first is None:
        return IN_CONTEXT
    if not chain.edited:
        return BlockState("left", first)
    block = chain.block
    name = block_id(block.message.seq, block.index)
    lost = first
    for key, end in zip(chain.holders[1:], [*chain.ends[1:], None], strict=False):
        retrievable = name in refs.get(key, ())
        if retrievable or holds(texts.get(key, "")):
            if end is None:
                return BlockState("retrievable" if retrievable else "named", first)
            lost = end
    return BlockState("lost", lost)
