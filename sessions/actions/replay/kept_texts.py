"""What policies would have done to a text that was forgotten."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import convert

from compaction.policies.policy import from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.simulation.kept import KeptText
from sessions.actions.lab.warm import answer
from sessions.actions.policies.policies import active_version
from sessions.actions.replay.why import TooLong, holds
from sessions.models import Session
from sessions.models.web.shown import view

TRIED = ("balanced", "balanced-lean", "offload-first", "sliding-window")
"""Presets to compare with, beside the active policy."""

MOST_STEPS, SECONDS = 3_000, 20.0


def compared(session: Session, text: str, needs: Iterable[int]) -> list[KeptText]:
    """The text under the recorded contexts, the active policy and others, best first.

    `needs` are the steps that needed it. Read and simulated in a warm worker. Raises TooLong,
    NotInTime, FailedApart.
    """
    if session.step_count > MOST_STEPS:
        raise TooLong(
            f"{session.step_count:,} steps are too many to simulate while you wait. Simulate a "
            "policy on this session in the lab."
        )
    if view() is not None and not holds(session, text):
        return []  # the worker would find what the reader is not shown
    active = active_version(session.team)
    policies = {str(active): from_dict(active.document)}
    policies |= {name: PRESETS[name] for name in TRIED if PRESETS[name] not in policies.values()}
    asked = {
        "session": str(session.pk),
        "text": text,
        "steps": sorted(set(needs)),
        "policies": {name: to_dict(policy) for name, policy in policies.items()},
    }
    line = answer(session.team_id, asked, SECONDS)
    rows = convert(line["rows"], list[KeptText])
    return sorted(rows, key=lambda row: (_worst(row), row.cost is None, row.cost))


def _worst(row: KeptText) -> int:
    """How many needs the context did not show; lost ones count most."""
    return sum({"in_context": 0, "named": 1, "retrievable": 2}.get(at, 100) for at in row.at)
