"""Why edits may not be made: what of the context would break."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compaction.context import Block
from compaction.edits import Edit, apply
from compaction.invariants import broken_by, violations
from compaction.state import State


def objection(state: State, edits: Iterable[Edit]) -> str:
    """Why these edits may not be made, judged on the groups they touch; empty when they may."""
    places: set[int] = set()
    after: dict[int, Block | None] = {}
    ids: dict[str, int] = {}
    for edit in edits:
        targets = []
        for target in edit.targets:
            position = ids.get(target, state.known.get(target, -1))
            stands = after[position] if position in after else state.standing.get(position)
            if stands is None or stands.id != target:
                return f"{target} does not stand in the context"
            targets.append(position)
            after[position] = None
            places.add(position)
            places.update(state.groups.companions(state.originals[position]))
        if not targets or targets != sorted(targets):
            return "targets are not in context order"
        if edit.replacement is not None:
            if edit.replacement.position != targets[0]:
                return f"{edit.replacement.id} does not stand at its first target"
            ids[edit.replacement.id] = targets[0]
            after[targets[0]] = edit.replacement
    standing = state.standing
    old = {place: standing[place] for place in sorted(places) if place in standing}
    merged: Mapping[int, Block | None] = old | after
    new = {place: block for place in sorted(merged) if (block := merged[place]) is not None}
    broken = broken_by(old, new, _Known(ids, state.known))
    return "; ".join(str(one) for one in broken[:5])


@dataclass(frozen=True, slots=True)
class _Known:
    """Ids that edits bring or that ever stood; a ChainMap takes five times as long to say so."""

    new: Mapping[str, int]
    old: Mapping[str, int]

    def __contains__(self, name: object) -> bool:
        return name in self.old or name in self.new


def objection_to_restoring(state: State, edit: Edit) -> str:
    """Why blocks may not stand again so, judged on whole contexts; empty when they may.

    What was broken in the originals already, as by agents that were interrupted, may come back.
    """
    after = apply(state.standing, (edit,))
    known = set(state.known) | {block.id for block in edit.restores}
    unmanaged = {p: b for p, b in state.originals.items() if p not in state.gone}
    inherited = set(violations(unmanaged, known, waiting=False))
    broken = [one for one in broken_by(state.standing, after, known) if one not in inherited]
    return "; ".join(str(one) for one in broken[:5])
