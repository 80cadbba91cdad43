"""Which of the two general presets costs a team less, and which keeps more, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from sessions.actions.lab.simulation_verdicts import SMALLEST, Difference
from sessions.actions.policies.policy_effects import Effect
from sessions.figures import change
from sessions.models import PolicyVersion

FOR_COST, FOR_SIZE = "balanced", "balanced-lean"
"""The presets that fit any session: optimized for cost, and for context size."""


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """Which of the two to use: `advice`, the figures behind it, and the simulation in the lab
    (empty without one); `known` only once both were simulated on the same sessions."""

    advice: str
    why: str
    url: str = ""
    known: bool = True


UNKNOWN = PresetChoice(
    f"Unknown whether {FOR_COST} or {FOR_SIZE} fits your sessions",
    "known once both are simulated on the same sessions",
    known=False,
)


NEITHER = "To spend less, use neither: both cost as much as was recorded, or more"

SIMULATING = replace(UNKNOWN, why="known once the simulation that is under way has ended")


def preset_choice(
    lean: PolicyVersion | None,
    found: Effect | None,
    recorded: Sequence[Effect | None] = (),
    *,
    simulating: bool,
) -> PresetChoice:
    """Choose by what the lean preset did against the other over the same sessions; both figures
    are needed, and of all sessions: part of a simulation may say the opposite of the whole. Neither
    if both cost at least what was recorded: `recorded` has what each did against that."""
    if simulating:
        return SIMULATING
    if lean is None or found is None or found.change is None or found.in_context is None:
        return UNKNOWN
    cost, recall = Difference("cost", found.change, found.in_context).sides
    url = ""
    if found.simulation:
        url = f"{reverse('simulation', args=[found.simulation])}?{urlencode({'of': lean})}"
    many = f"{found.sessions:,} session{'' if found.sessions == 1 else 's'}"
    why = (
        f"{_cost(found.change, cost)}, and {_recall(found.in_context, recall)}; simulated on {many}"
        f" ({found.when})"
    )
    changes = [one.change if one is not None else None for one in recorded]
    saves = not changes or any(one is None or one < -SMALLEST for one in changes)
    return PresetChoice(_advice(cost, recall) if saves else NEITHER, why, url)


def _advice(cost: str, recall: str) -> str:
    """What to use, by whether the lean preset is better, the same or worse in each."""
    if cost == recall == "same":
        return f"Use either: {FOR_COST} and {FOR_SIZE} do the same on your sessions"
    if "better" not in (cost, recall):
        return f"Use {FOR_COST}"
    if "worse" not in (cost, recall):
        return f"Use {FOR_SIZE}"
    less, more = (FOR_SIZE, FOR_COST) if cost == "better" else (FOR_COST, FOR_SIZE)
    return f"Use {less} to spend less, {more} to keep more in context"


def _cost(share: float, side: str) -> str:
    if side == "same":
        return "they cost the same"
    said = change(share)
    if said.startswith("×"):
        return f"{FOR_SIZE} costs {said[1:]} times as much as {FOR_COST}, including reading back"
    more = "more" if share > 0 else "less"
    return f"{FOR_SIZE} costs {said.lstrip('+−')} {more} than {FOR_COST}, including reading back"


def _recall(points: float, side: str) -> str:
    if side == "same":
        return "both keep as much of what is needed later in context"
    keeps = FOR_SIZE if side == "better" else FOR_COST
    return f"{keeps} keeps {abs(points) * 100:.1f} points more of what is needed later in context"
