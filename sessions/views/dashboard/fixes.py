"""What to do: what cost money for nothing, and where to change it, by what it saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from compaction.policies.origin import settings_in
from compaction.policies.resolve import paths_of
from sessions.actions.assessments.session_verdicts import lost_and_needed
from sessions.actions.lab.simulation_verdicts import difference, sessions_of
from sessions.figures import day, finely, tokens
from sessions.models import PolicyVersion
from sessions.models.cache.causes import CauseSums, causes_in
from sessions.models.dashboard.dashboards import Dashboard
from sessions.models.dashboard.savings import SimulatedSaving
from sessions.models.tools.unused import AgentTools, UnusedTools
from sessions.views.dashboard.ranking import Fix, ranked

CAUSES: dict[str, tuple[str, str]] = {
    "ttl": ("Use the 1-hour cache TTL", "The cache expired between two calls"),
    "model": ("Switch models at task boundaries", "Another model reads nothing of the cache"),
    "tools": ("Keep the tool list constant", "Tools or their order changed within a session"),
    "system": ("Keep the system prompt constant", "It changed, so nothing after it was read"),
    "settings": ("Keep request settings constant", "Tool choice, thinking or effort changed"),
    "images": (
        "Keep the number of images steady",
        "Adding a first image, or removing the last, breaks the cache",
    ),
    "restart": (
        "Continue in the running client",
        "A restarted client, known or probable, built a new prompt",
    ),
    "look_back": ("Set cache breakpoints closer together", "The last one was over 20 blocks back"),
    "edit": ("Edit or compact less often", "Each had what follows it written again"),
}
"""What to do about each avoidable cause of cache breaks, and why."""

NO_FIX: dict[str, tuple[str, str]] = {
    "unexplained": ("Unknown", "The log does not show what changed"),
    "cold_start": ("Nothing to fix", "The first call writes its prompt"),
    "rewind": ("Nothing to fix", "A person went back to an earlier step"),
    "thinking": ("Nothing to fix", "This model drops earlier thinking when a person writes"),
    "steps": ("Nothing to fix", "This cache stores whole increments only"),
    "search": ("Nothing to fix", "The provider searched within the call before"),
    "minimum": ("Nothing to fix", "This model does not cache a prompt this short"),
}
"""Causes that cannot be avoided, and why."""

EDITS_ALSO_SAVE = "edits also make prompts smaller; simulate in the lab"
"""Why it is unknown what fewer edits would save."""

AGAINST_RECORDED = "It can exceed the avoidable spend: smaller prompts save on every call."
"""Why a saving may be larger than the avoidable spend."""

LEAST_LOST = (
    "No simulated policy saves and keeps what is needed as often; of those that save, this one "
    "loses least: "
)
"""Comes before a policy that saves and keeps less."""

NO_COST = " (no extra cost found)"
"""Follows lost facts that were used again, if no call with a price was made to obtain them."""

SIMULATE, OPEN = "Simulate", "Open comparison"

SET_TTL = 'ENABLE_PROMPT_CACHING_1H=1 for Claude Code, "ttl": "1h" in cache_control for the API'
"""Where an agent without a policy asks for a one-hour TTL."""

KEEP_TTL = (
    "Keep the TTL",
    "An hour's would not have kept the cache, or would have cost more in that session",
)


@dataclass(frozen=True, slots=True)
class FixPlaces:
    """Where fixes lead: the cache, tools and compactions of the range and split; `managed` if a
    policy managed any of the sessions in which a one-hour TTL saves."""

    cache: str
    lost: str
    tools: str
    active: PolicyVersion
    may_write: bool
    managed: bool

    def setting(self, key: str, value: str = "") -> str:
        """The editor at a setting of the active policy, with a proposed value; the policy's page
        if it has no such setting, or the person may not edit."""
        document = self.active.document
        name = self.active.policy.name
        if not self.may_write or not paths_of(document, key):
            return reverse("policy", args=[name])
        asked = {"set": key, "to": value} if value else {"set": key}
        return f"{reverse('policy_edit', args=[name])}?{urlencode(asked)}"


def fix_of(cause: CauseSums) -> tuple[str, str]:
    """What to do about the breaks of a cause, and why."""
    if cause.kind == "ttl" and not cause.avoidable:
        return KEEP_TTL
    return (CAUSES | NO_FIX)[cause.kind]


def fixes(
    made: Dashboard, unused: UnusedTools, places: FixPlaces, saving: SimulatedSaving | None
) -> list[Fix]:
    """What to do about the sessions of a range, as `ranked`."""
    causes = causes_in(made.whole)
    rows = [
        *(
            _of_cause(one, places)
            for one in causes
            if one.avoidable and one.microusd and one.kind != "ttl"
        ),
        *_of_ttl(made, causes, places),
        *(_of_tools(one, places) for one in unused.agents if one.microusd),
        *_of_policies(made, places, saving),
        *_of_losses(made, places),
    ]
    return ranked(rows)


def _of_cause(cause: CauseSums, places: FixPlaces) -> Fix:
    title, why = fix_of(cause)
    many = f"{_count(cause.breaks, 'cache break')} in {_count(cause.sessions, 'session')}"
    button, url = "Show breaks", f"{places.cache}&{urlencode(cause.asked)}#worst"
    if cause.kind == "tools":
        button, url = "Open tools", places.tools
    return Fix(
        "break",
        title,
        f"{why}: {many}.",
        None if cause.kind == "edit" else cause.microusd or 0,
        EDITS_ALSO_SAVE if cause.kind == "edit" else "estimated",
        button,
        url,
        cause.at_least,
        at_most=cause.kind != "edit" and not cause.at_least,
        sessions=cause.sessions,
    )


def _of_ttl(made: Dashboard, causes: list[CauseSums], places: FixPlaces) -> Iterator[Fix]:
    """A one-hour TTL, for the sessions in which it would have cost less."""
    cause = next((one for one in causes if one.key == ("ttl", True)), None)
    saved = made.whole.of["hour_saved"]
    if cause is not None and saved > 0:
        title, why = CAUSES["ttl"]
        many = f"{_count(cause.breaks, 'cache break')} in {_count(cause.sessions, 'session')}"
        button, url = "Show breaks", f"{places.cache}&{urlencode(cause.asked)}#worst"
        where = "Set it in the agent"
        if places.managed:
            button, url = "Change TTL", places.setting("ttl", "1h")
            where = "Sessions without a policy: set it in the agent"
        said = f"{why}: {many}. Net of the higher price of writing a 1-hour cache, in the sessions "
        said += "where it saves; in others it costs more. "
        said += f"{where}: {SET_TTL}."
        yield Fix(
            "break",
            title,
            said,
            saved,
            "estimated",
            button,
            url,
            cause.at_least,
            sessions=cause.sessions,
        )


def _of_tools(one: AgentTools, places: FixPlaces) -> Fix:
    many = len(one.unused)
    return Fix(
        "unused",
        f"Remove {_count(many, 'unused tool')} of {one.agent or 'an agent without a name'}",
        f"{tokens(one.tokens)} tokens of definitions in each prompt, "
        f"{_count(one.sessions, 'session')}.",
        one.microusd or 0,
        one.basis,
        "See which",
        places.tools,
        sessions=one.sessions,
    )


def _of_policies(
    made: Dashboard, places: FixPlaces, saving: SimulatedSaving | None
) -> Iterator[Fix]:
    """What a policy would save for sessions without one, as simulated; unknown if it was not."""
    of = made.whole.of
    if saving is None and not of["lost_unmanaged"]:
        return
    title, lost, proof = "Manage these sessions with a policy", "", ""
    if of["lost_unmanaged"]:
        free = not of["losses_unmanaged"]
        lost = f"In this range, {lost_and_needed(of['lost_unmanaged'], free=free)}"
        lost += f" in {_count(of['unmanaged_lost'], 'session')}{NO_COST if free else ''}."
        proof = places.lost
    if saving is None:
        yield _unsimulated(title, lost, proof, places)
        return
    asked = urlencode({"of": saving.version})
    url = f"{reverse('simulation', args=[saving.simulation])}?{asked}"
    if not saving.saves and not lost:
        return
    if not saving.saves and not (saving.keeps and saving.differs):
        why = "no simulated policy saves"
        yield Fix("loss", title, lost, None, why, OPEN, url, proof_url=proof, unknown="none")
        return
    said = f"{'' if saving.keeps else LEAST_LOST}{_simulated(saving)}. {lost}".strip()
    said += f" {AGAINST_RECORDED}" if saving.saves else ""
    yield Fix(
        "loss",
        title,
        said,
        saving.microusd,
        "simulated",
        OPEN,
        url,
        proof_url=proof,
        sessions=saving.sessions,
        spent=(int(saving.recorded["cost_microusd"]), int(saving.recorded["priced"])),
        forgets=_forgets(saving),
    )


def _unsimulated(title: str, lost: str, proof: str, places: FixPlaces) -> Fix:
    """A simulation to start, on the newest sessions that lost facts."""
    return Fix(
        "loss",
        title,
        lost,
        None,
        "savings are known after a simulation",
        SIMULATE,
        reverse("policies"),
        proof_url=proof,
        unknown="not simulated yet",
        starts=reverse("simulate_newest") if places.may_write else "",
    )


def _simulated(saving: SimulatedSaving) -> str:
    """What was simulated and how it differs from the recording, as the lab says it, with both
    recalls: over all facts that these sessions used again."""
    mine, its = saving.simulated, saving.recorded
    over = sessions_of(saving.sessions, mine["priced"])
    if saving.sessions < saving.asked:
        over += f" of this range without a policy (the simulation has {saving.asked:,})"
    said = f"{saving.version} simulated on {day(saving.at)} over {over}: "
    said += difference(mine, its).text
    if mine["in_context"] is None or its["in_context"] is None:
        return said
    return (
        f"{said} ({finely(mine['in_context'])} instead of {finely(its['in_context'])} of "
        f"{_count(its['needs'], 'use')} of facts, in all steps)"
    )


def _forgets(saving: SimulatedSaving) -> float | None:
    found = difference(saving.simulated, saving.recorded)
    if found.recall is None:
        return None
    return -found.recall if found.sides[1] == "worse" else 0.0


def _of_losses(made: Dashboard, places: FixPlaces) -> Iterator[Fix]:
    of = made.whole.of
    managed = of["losses"] - of["losses_unmanaged"]
    if managed > 0:
        yield Fix(
            "loss",
            "Keep files longer",
            "Managed sessions made calls again for what had left their context.",
            managed,
            "estimated",
            "Keep longer",
            places.setting("payback.readings", _twice(places.active)),
        )


def _twice(active: PolicyVersion) -> str:
    """Twice the steps that the active policy keeps files for; empty if it has no such setting."""
    values = settings_in(active.document)
    steps = values.get(("payback", 0, "readings"))
    return str(min(2 * steps, 10_000)) if isinstance(steps, int) else ""


def _count(many: int, what: str) -> str:
    return f"{many:,} {what}{'' if many == 1 else 's'}"
