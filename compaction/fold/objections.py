"""Check whether edits would break a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.edits import Edit, apply
from compaction.context.invariants import broken_by, violations
from compaction.fold.state import State


def objection(state: State, edits: Iterable[Edit]) -> str:
    """Return why edits must not be made, judged on the groups they touch; empty if they may."""
    places: set[int] = set()
    after: dict[int, Block | None] = {}
    ids: dict[str, int] = {}
    for edit in edits:
        targets = []
        for target in edit.targets:
            position = ids.get(target, state.known.get(target, -1))
            stands = after[position] if position in after else state.standing.get(position)
            if stands is None or stands.id != target:
                return f"{target} is not in the context"
            targets.append(position)
            after[position] = None
            places.add(position)
        if not targets or targets != sorted(targets):
            return "targets are not in context order"
        if edit.replacement is not None:
            if edit.replacement.position != targets[0]:
                return f"{edit.replacement.id} is not at the position of its first target"
            ids[edit.replacement.id] = targets[0]
            after[targets[0]] = edit.replacement
    places |= state.groups.companions(state.originals[place] for place in places)
    standing = state.standing
    old = {place: standing[place] for place in sorted(places) if place in standing}
    merged: Mapping[int, Block | None] = old | after
    new = {place: block for place in sorted(merged) if (block := merged[place]) is not None}
    broken = broken_by(old, new, _KnownIds(ids, state.known))
    return "; ".join(str(one) for one in broken[:5])


@dataclass(frozen=True, slots=True)
class _KnownIds:
    """Ids of new and earlier blocks; a ChainMap takes five times as long for a lookup."""

    new: Mapping[str, int]
    old: Mapping[str, int]

    def __contains__(self, name: object) -> bool:
        return name in self.old or name in self.new


def objection_to_restoring(state: State, edit: Edit) -> str:
    """Return why blocks must not be restored, judged on whole contexts; empty if they may.

    Rules that the originals already broke, as in logs of interrupted agents, do not count.
    """
    after = apply(state.standing, (edit,))
    known = set(state.known) | {block.id for block in edit.restores}
    originals = {p: b for p, b in state.originals.items() if p not in state.gone}
    inherited = set(violations(originals, known, waiting=False))
    broken = [one for one in broken_by(state.standing, after, known) if one not in inherited]
    return "; ".join(str(one) for one in broken[:5])
