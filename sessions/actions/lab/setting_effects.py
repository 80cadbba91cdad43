"""What changing a single setting did to a team's sessions, from its simulations and searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compaction.policies.origin import Document, Key, differing, settings_in
from sessions.actions.lab.simulation_verdicts import Difference, difference
from sessions.models.accounts.teams import Team
from sessions.models.lab.simulated_sums import sums
from sessions.models.lab.simulations import Simulation, SimulationResult
from sessions.models.lab.tunings import Tuning
from sessions.models.record.demo_data import counts, has_real
from sessions.models.record.sessions import Session

SIMULATIONS, TUNINGS = 30, 2
"""Newest simulations and searches to look at."""


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """One setting changed from `before` to `after`, and what that did to the same sessions."""

    before: Any
    after: Any
    found: Difference
    sessions: int
    at: datetime
    simulation: Simulation | None = None
    tuning: Tuning | None = None
    demo: bool = False
    """Whether the sessions are the demo's: then the team has no others."""


def setting_effects(team: Team, document: Document) -> dict[Key, SettingEffect]:
    """Return the newest effect of each setting on sessions that count; changes of this document's
    own value first."""
    made: dict[Key, SettingEffect] = {}
    here = settings_in(document)
    for key, effect in (*_of_simulations(team), *_of_tunings(team)):
        known = made.get(key)
        value = here.get(key)
        if known is None or (effect.before == value and known.before != value):
            made[key] = effect
    return made


def _of_simulations(team: Team) -> Iterator[tuple[Key, SettingEffect]]:
    rows = Simulation.objects.for_team(team).select_related("draft", "active")
    for one in rows.order_by("-created")[:SIMULATIONS]:
        found = _single(settings_in(one.active.document), settings_in(one.draft.document))
        if found is None:
            continue
        sides, demo = _figures(team, one)
        both = sides[one.draft_id].keys() & sides[one.active_id].keys()
        if both:
            draft, active = (
                sums([sides[version][key] for key in sorted(both)])
                for version in (one.draft_id, one.active_id)
            )
            effect = difference(draft, active)
            yield (
                found[0],
                SettingEffect(
                    *found[1:], effect, len(both), one.created, simulation=one, demo=demo
                ),
            )


def _figures(
    team: Team, simulation: Simulation
) -> tuple[dict[int, dict[str, Mapping[str, Any]]], bool]:
    """Figures of sessions that count under the draft and the active version, by session; and
    whether these are the demo's."""
    sides: dict[int, dict[str, Mapping[str, Any]]] = {
        simulation.draft_id: {},
        simulation.active_id: {},
    }
    rows = SimulationResult.objects.filter(
        counts(team.pk, "session__"), simulation=simulation, problem="", version__in=[*sides]
    )
    of_demo = False
    for version, session, figures, demo in rows.values_list(
        "version", "session", "figures", "session__demo"
    ):
        sides[version][str(session)] = figures
        of_demo = of_demo or demo
    return sides, of_demo


def _of_tunings(team: Team) -> Iterator[tuple[Key, SettingEffect]]:
    """Compare each trial with the earlier ones that differ in one setting; searches over the demo
    only if its sessions count."""
    for one in Tuning.objects.for_team(team).order_by("-created")[:TUNINGS]:
        demo = Session.objects.filter(team=team, pk__in=one.sessions, demo=True).exists()
        if demo and has_real(team.pk):
            continue
        trials = [
            (settings_in(trial.document), trial.figures) for trial in one.trials.order_by("number")
        ]
        for index, (values, figures) in enumerate(trials):
            for earlier, others in trials[:index]:
                if (found := _single(earlier, values)) is not None:
                    effect = difference(figures, others)
                    yield (
                        found[0],
                        SettingEffect(
                            *found[1:],
                            effect,
                            len(one.sessions),
                            one.created,
                            tuning=one,
                            demo=demo,
                        ),
                    )


def _single(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> tuple[Key, Any, Any] | None:
    """The only setting that differs, with both values; None if there is not exactly one."""
    found = differing(before, after, most=2)
    return (found[0], before[found[0]], after[found[0]]) if len(found) == 1 else None
