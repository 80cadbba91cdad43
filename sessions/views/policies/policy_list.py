"""The list of policies, and what each did to the team's sessions."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from compaction.advice.lint import remarks
from compaction.advice.use_lint import id_remarks
from compaction.policies.policy import Policy
from compaction.policies.presets import DOES, PRESETS
from compaction.proposals.strategy import Remark
from compaction.strategies import STRATEGIES
from sessions.access import team_of
from sessions.actions.demo.demo_tuning import is_of_demo
from sessions.actions.lab.choices import usual_choice
from sessions.actions.lab.simulation_verdicts import Difference
from sessions.actions.policies.policies import UnknownPolicy, active_version, in_use
from sessions.actions.policies.policy_effects import Effect, Effects, RecordedFigures, effects_of
from sessions.figures import finely
from sessions.models import Job, PolicyVersion, Session, Simulation, Team
from sessions.models import Policy as PolicyRow
from sessions.models.policies.policy_documents import readable
from sessions.models.policies.policy_use import PolicyUse, UsePlace, one_step, was_reviewed
from sessions.views.policies.lean_or_balanced import FOR_COST, FOR_SIZE, preset_choice
from sessions.views.web.demo_notice import SWITCH, demo_notice
from sessions.views.web.pages import Link, Page


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """What a version did, against the recording and, in words, against the active version (empty
    for that one); `url` compares it with what was recorded (empty without a simulation of the
    lab)."""

    effect: Effect
    recorded_in_context: float | None
    active: str
    against_active: str
    url: str

    @property
    def against_parts(self) -> list[str]:
        """Cost and recall against the active version, each for a line of its own."""
        return self.against_active.split(", ") if self.against_active else []


@dataclass(frozen=True, slots=True)
class PolicyEffects:
    """What the versions of a team did to its sessions, beside its active version."""

    effects: Effects
    active: PolicyVersion | None

    @classmethod
    def of(cls, team: Team, pair: tuple[int, int] | None = None) -> PolicyEffects:
        """The effects of a team's versions, and of two against each other."""
        try:
            active = active_version(team)
        except UnknownPolicy:
            return cls(effects_of(team, pair=pair), None)
        return cls(effects_of(team, active.pk, pair), active)

    def shown(self, version: PolicyVersion | None) -> ShownEffect | None:
        """The effect of a version; None if it was not simulated."""
        effect = self.effects.of.get(version.pk) if version else None
        if version is None or effect is None:
            return None
        against = self.effects.against_active.get(version.pk)
        asked = urlencode({"of": version})
        return ShownEffect(
            effect,
            self.effects.recorded.in_context if self.effects.recorded else None,
            str(self.active) if self.active else "",
            Difference("cost", against.change, against.in_context).text if against else "",
            f"{reverse('simulation', args=[effect.simulation])}?{asked}"
            if effect.simulation
            else "",
        )

    @property
    def recorded(self) -> RecordedFigures | None:
        """What was recorded in the simulated sessions."""
        return self.effects.recorded

    @property
    def trade(self) -> str:
        """What the active version trades, in a sentence; empty if unknown."""
        found = self.shown(self.active)
        if found is None or None in (found.effect.in_context, found.recorded_in_context):
            return ""
        change = Difference("cost", found.effect.change, None).text.partition(",")[0]
        mine, its = finely(found.effect.in_context), finely(found.recorded_in_context)
        return (
            f"{self.active} against recorded: {change} including reading back, and {mine} of what "
            f"was needed again was in context instead of {its}."
        )


@dataclass(frozen=True, slots=True)
class ListedPolicy:
    """One policy in the list; `newest` is None for an unused preset."""

    name: str
    preset: bool
    newest: PolicyVersion | None
    places: list[tuple[PolicyVersion, UsePlace]]
    sessions: int
    remarks: tuple[Remark, ...] | None
    does: str
    effect: ShownEffect | None = None
    based_on: str = ""
    demo: bool = False

    @property
    def warnings(self) -> int:
        """Number of warnings among the remarks."""
        return sum(one.severity == "warning" for one in self.remarks or ())

    @property
    def notes(self) -> int:
        """Number of notes among the remarks."""
        return len(self.remarks or ()) - self.warnings


@require_GET
def policies(request: HttpRequest) -> HttpResponse:
    """List the team's own policies, and presets, with what each did to the team's sessions."""
    team = team_of(request)
    standing = in_use(team)
    versions = PolicyVersion.objects.select_related("author").defer("document")
    rows = PolicyRow.objects.filter(team=team).order_by("name")
    newest = Prefetch("versions", versions.order_by("-number"))
    stored = {row.name: row for row in rows.prefetch_related(newest)}
    lean, cheap = (_newest(stored.get(name)) for name in (FOR_SIZE, FOR_COST))
    effects = PolicyEffects.of(team, (lean.pk, cheap.pk) if lean and cheap else None)
    notice = demo_notice(request, team, switch=True)
    data = notice["demo_data"]
    beside = data is not None and not data.alone and not notice["demo_asked"]
    own = [_row(row, standing, effects) for row in stored.values() if row.name not in PRESETS]
    own = [row for row in own if not (row.demo and beside)]
    presets = [
        _row(stored[name], standing, effects) if name in stored else _unused(name)
        for name in PRESETS
    ]
    simulating = _simulating(team)
    context = {
        **notice,
        "section": "policies",
        "own": own,
        "presets": presets,
        "count": len(own) + len(presets),
        "effects": effects,
        "choice": preset_choice(
            lean,
            effects.effects.pair,
            [effects.effects.of.get(one.pk) for one in (lean, cheap) if one],
            simulating=simulating is not None,
        ),
        "simulating": simulating,
        "unknown": sum(row.effect is None for row in (*own, *presets) if not row.demo),
        "usual": usual_choice(team),
        "may_simulate": Session.objects.for_team(team).filter(step_count__gt=0).exists(),
        "no_default": standing.active is None,
        "id_remarks": id_remarks(one_step(team)),
    }
    return render(request, "policies/list.html", context)


def does(policy: Policy) -> str:
    """What a policy does: a preset's own sentence; of others one per step, and the recitation."""
    if PRESETS.get(policy.name) == policy:
        return DOES[policy.name]
    said = [STRATEGIES[step.strategy].does for step in policy.steps]
    if policy.recite is not None:
        said.append("Repeats the plan and what matters at the end of each request.")
    if policy.heeds_objective:
        lean = policy.objective == "lean"
        said.append(
            "Optimizes for context size: edits early."
            if lean
            else "Optimizes for cost: edits when that pays back."
        )
    return " ".join(said) or DOES["passthrough"]


def _newest(row: PolicyRow | None) -> PolicyVersion | None:
    return next(iter(row.versions.all()), None) if row is not None else None


def _row(row: PolicyRow, standing: PolicyUse, effects: PolicyEffects) -> ListedPolicy:
    versions = list(row.versions.all())
    newest = _newest(row)
    policy = readable(newest) if newest is not None else None
    said = None
    if newest is not None and policy is not None:
        said = remarks(policy, reviewed=was_reviewed(newest, standing))
    return ListedPolicy(
        row.name,
        row.name in PRESETS,
        newest,
        [(one, place) for one in versions for place in standing.places(one.pk)],
        sum(standing.sessions.get(one.pk, 0) for one in versions),
        said,
        does(policy) if policy is not None else "",
        effects.shown(newest),
        row.based_on,
        is_of_demo(row),
    )


def _unused(name: str) -> ListedPolicy:
    policy = PRESETS[name]
    return ListedPolicy(name, True, None, [], 0, remarks(policy), does(policy))


def _simulating(team: Team) -> Simulation | None:
    """The newest simulation of the team that has not ended."""
    rows = Simulation.objects.for_team(team).filter(
        job__state__in=(Job.State.QUEUED, Job.State.RUNNING)
    )
    return rows.select_related("job").order_by("-created").first()


PAGES = (
    Page(
        route="policies/",
        view=policies,
        name="policies",
        query=(SWITCH,),
        link=Link(50, "Policies", "policies", "g p", "policies", "Improve"),
        about="presets, versions, compaction settings",
    ),
)
