"""A simulation as JSON: state, and results so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest
from django.urls import reverse

from sessions.actions.lab.simulation_verdicts import simulation_verdict
from sessions.models import PolicyVersion, Run, Session, Simulation, SimulationResult
from sessions.models.lab.measured import measured_usage
from sessions.models.lab.probed import probes
from sessions.models.lab.simulated_sums import (
    ASSUMPTIONS,
    Regression,
    against_active,
    against_recorded,
    regressions,
    sums,
)

Body = dict[str, Any]


def simulation_line(request: HttpRequest, simulation: Simulation) -> Body:
    """A simulation in a list. `done` and `total` count sessions."""
    job = simulation.job
    done = simulation.results.filter(version=None).count()
    total = len(simulation.sessions)
    return {
        "id": str(simulation.pk),
        "state": job.state if job else ("done" if done == total else "cancelled"),
        "done": done,
        "total": total,
        "draft": str(simulation.draft),
        "active": str(simulation.active),
        "chosen": simulation.chosen,
        "note": simulation.note,
        "author": _name(simulation),
        "created": simulation.created.isoformat(),
        "job": str(job.pk) if job else None,
        "problem": job.problem if job else None,
        "url": request.build_absolute_uri(reverse("simulation", args=[simulation.pk])),
    }


def _name(simulation: Simulation) -> str | None:
    author = simulation.author
    return (author.get_full_name() or author.get_username()) if author else None


@dataclass(frozen=True, slots=True)
class _Results:
    """Results by session and version; `through` lists sessions with all results and no problem."""

    results: Mapping[tuple[UUID, int | None], SimulationResult]
    through: Sequence[UUID]
    problems: Sequence[SimulationResult]

    @classmethod
    def of(cls, simulation: Simulation) -> _Results:
        rows = list(simulation.results.order_by("pk"))
        problems = [row for row in rows if row.problem]
        bad = {row.session_id for row in problems}
        through = [row.session_id for row in rows if row.version_id is None]
        by_place = {(row.session_id, row.version_id): row for row in rows}
        return cls(by_place, [one for one in through if one not in bad], problems)

    def figures(self, version: int | None) -> list[Body]:
        """Figures of the finished sessions, in the same order for every version."""
        return [self.results[session, version].figures for session in self.through]


def version_of(simulation: Simulation, ref: str) -> PolicyVersion | None:
    """The version of a simulation named by "name@3"; None without a name. Raises Http404."""
    if not ref:
        return None
    versions = simulation.versions.select_related("policy")
    found = next((one for one in versions if str(one) == ref), None)
    if found is None:
        raise Http404("the simulation has no such version")
    return found


def simulation_body(
    request: HttpRequest, simulation: Simulation, of: PolicyVersion | None = None
) -> Body:
    """A simulation with its results over the finished sessions: its draft against the active
    version, or version `of` it against the recording."""
    found = _Results.of(simulation)
    draft = of or simulation.draft
    lived = of is not None or draft.pk == simulation.active_id
    versions = {one.pk: one for one in simulation.versions.select_related("policy")}
    others = [one for pk, one in versions.items()
              if pk not in (draft.pk, simulation.active_id)]  # fmt: skip
    roles = [("draft", draft), ("active", simulation.active)]
    roles += [("other", one) for one in others]
    return simulation_line(request, simulation) | {
        "basis": "simulated",
        "draft": str(draft),
        "against": "recorded" if lived else "active",
        "through": len(found.through),
        "verdict": _verdict(simulation, found, draft.pk, lived=lived),
        "problems": _problems(found),
        "versions": [
            *(_version(found, role, version, simulation.active_id) for role, version in roles),
            _recorded(found),
        ],
        "regressions": [] if lived else _regressions(simulation, found),
        "probes": probes(simulation),
        "assumptions": list(ASSUMPTIONS),
    }


def compared(simulation: Simulation, version: PolicyVersion) -> Body:
    """One version compared with the active one, as in `simulation_body`, plus `active_sums` and the
    `verdict` on it."""
    found = _Results.of(simulation)
    answer = _version(found, "draft", version, simulation.active_id)
    return answer | {
        "active_sums": sums(found.figures(simulation.active_id)),
        "verdict": _verdict(
            simulation, found, version.pk, lived=version.pk == simulation.active_id
        ),
    }


def _verdict(simulation: Simulation, found: _Results, draft: int, *, lived: bool) -> Body:
    """The verdict on a version, against the recording alone if `lived`."""
    job = simulation.job
    return asdict(
        simulation_verdict(
            sums(found.figures(draft)),
            None if lived else sums(found.figures(simulation.active_id)),
            sums(found.figures(None)),
            len(found.through),
            len(simulation.sessions),
            over=job is None or job.is_finished,
        )
    )


def _version(found: _Results, role: str, version: PolicyVersion, active: int) -> Body:
    figures = found.figures(version.pk)
    pairs = list(zip(figures, found.figures(active), strict=True))
    return {
        "ref": str(version),
        "name": version.policy.name,
        "number": version.number,
        "role": role,
        "sessions": len(figures),
        "sums": sums(figures),
        "against_recorded": against_recorded(figures),
        "against_active": against_active(pairs),
    }


def _recorded(found: _Results) -> Body:
    figures = found.figures(None)
    return {
        "ref": "recorded",
        "name": "recorded",
        "number": None,
        "role": "recorded",
        "sessions": len(figures),
        "sums": sums(figures),
        "against_recorded": None,
        "against_active": None,
        "measured": measured_usage(found.through, figures),
    }


def _problems(found: _Results) -> list[Body]:
    titles = _titles({row.session_id for row in found.problems})
    by_session = {row.session_id: row.problem for row in found.problems}
    return [
        {"session": str(pk), "title": titles[pk], "problem": problem}
        for pk, problem in by_session.items()
    ]


def _titles(sessions: set[UUID]) -> dict[UUID, str]:
    rows = Session.objects.filter(pk__in=sessions).only("title", "external_id")
    return {row.pk: str(row) for row in rows}


def _regressions(simulation: Simulation, found: _Results) -> list[Body]:
    draft, active = simulation.draft_id, simulation.active_id
    rows = [
        (
            session,
            found.results[session, draft].figures,
            found.results[session, draft].worst,
            found.results[session, active].figures,
        )
        for session in found.through
    ]
    worst = regressions(rows, str(simulation.active))
    keys = {one.key for one in worst}
    titles = _titles(keys)
    runs = Run.objects.filter(
        session__in=keys, policy_version=draft, origin=Run.Origin.SIMULATED
    ).values_list("session", "pk")
    stored = dict(runs)
    return [_regression(simulation, one, titles, stored.get(one.key)) for one in worst]


def _regression(
    simulation: Simulation, one: Regression, titles: Mapping[UUID, str], run: UUID | None
) -> Body:
    step = one.step or 1
    entry = f"&m={one.entry}" if one.entry else ""
    replay = reverse("replay_step", args=[one.key, step])
    return {
        "session": str(one.key),
        "title": titles.get(one.key, ""),
        "version": str(simulation.draft),
        "step": one.step,
        "entry": one.entry,
        "fact": one.fact,
        "why": one.why,
        "harm": round(one.harm, 4),
        "cost_change": one.cost_change,
        "in_context_change": one.in_context_change,
        "run_url": f"{replay}?run={run}{entry}" if run else None,
    }
