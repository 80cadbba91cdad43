"""Tunings: searches for policies with lower cost and higher recall."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction

from compaction.advice.tuner import frontier, identity, next_policies
from compaction.facts.recall import recall
from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.simulation.recording import Recording
from sessions.actions.accounts import audit
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.lab.choices import NoChoice, chosen_sessions, read_choice
from sessions.actions.lab.simulated_figures import figures_of, recording_of
from sessions.actions.policies.policies import save_version
from sessions.models import PolicyVersion, Session, Team, Tuning, TuningTrial
from sessions.models.lab.simulated_sums import sums
from sessions.models.lab.tuned import found_by, objective_of, tried_of
from sessions.models.record.blobs import DamagedBlob
from sessions.models.record.values import MissingBlob

log = logging.getLogger(__name__)

KIND = "tuning"
"""The kind of its job."""

TRIALS, MOST_TRIALS = 40, 400
"""Default and maximum number of policies tried by a search."""

MOST_SESSIONS = 120
"""Maximum number of sessions in a search, held-out ones included (our choice: a trial takes
seconds)."""

FEWEST_TO_HOLD = 4
"""With fewer sessions, none are held out, because too few would be left to search."""

GENERATION = 8
"""Number of policies tried at once: each session is read once for all of them."""


def ask(
    base: PolicyVersion,
    choice: Mapping[str, Any],
    objective: str,
    limit: int,
    actor: audit.Actor,
) -> Tuning:
    """Create a search that starts from a version, and queue its job.

    Every other selected session is held out, chosen by hash and therefore reproducible. Raises
    NoChoice.
    """
    team = base.policy.team
    chosen = read_choice(choice)
    sessions = chosen_sessions(team, chosen)
    if len(sessions) > MOST_SESSIONS:
        raise NoChoice("limit", f"Too many sessions. A search takes at most {MOST_SESSIONS}.")
    names = sorted((str(one.pk) for one in sessions), key=_drawn)
    held = names[1::2] if len(names) >= FEWEST_TO_HOLD else []
    with transaction.atomic():
        tuning = Tuning.objects.create(
            team=team,
            author=actor.user,
            base=base,
            objective=objective,
            chosen=chosen,
            sessions=[name for name in names if name not in held],
            held=held,
            limit=min(limit, MOST_TRIALS),
        )
        tuning.job = jobs.enqueue(team, KIND, {"tuning": str(tuning.pk)})
        tuning.save(update_fields=["job"])
        audit.note(
            team, actor, "tuning.asked", str(base), tuning=str(tuning.pk), sessions=len(names)
        )
    return tuning


def _drawn(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def save_trial(trial: TuningTrial, name: str, actor: audit.Actor) -> PolicyVersion:
    """Save a trial as a version of the team's own policy. Raises InvalidPolicy.

    It is based on the preset it differs least from.
    """
    tuning = trial.tuning
    note = f"Trial {trial.number} of a search {tuning}."
    based_on = _preset_of(tuning, next(one.like for one in found_by(tuning) if one.trial == trial))
    return save_version(tuning.team, name, trial.document, based_on, note, actor.user, actor)


def _preset_of(tuning: Tuning, like: str) -> str:
    """The preset behind a starting policy: itself, or the base version's."""
    policy = tuning.base.policy
    found = policy.name if policy.preset else policy.based_on
    return like if like in PRESETS else found if found in PRESETS else ""


def tuning_job(running: Running) -> JobOutcome:
    """Run the `tuning` job: payload {tuning}.

    Works in generations, each written at once; a new attempt continues where the last one stopped.
    Finally checks the frontier and the starting policies on held-out sessions.
    """
    rows = Tuning.objects.for_team(running.team).select_related("base__policy")
    tuning = rows.filter(pk=running.payload["tuning"]).first()
    if tuning is None:
        raise PermanentFailure("The search no longer exists", "It was deleted.", "Nothing to do.")
    if tuning.recorded is None:
        tuning.recorded = _recorded(running.team, tuning.sessions)
        tuning.save(update_fields=["recorded"])
    while policies := _generation(tuning):
        done = tuning.trials.count()
        running.progress(done, tuning.limit, "policies")
        sums_of = _summed(running, tuning, tuning.sessions, policies)
        if not sums_of:
            raise PermanentFailure(
                "None of its sessions can be read",
                "They were deleted or have no model call.",
                "Choose other sessions.",
            )
        _write(tuning, policies, sums_of)
    _hold_against(running, tuning)
    total = tuning.trials.count()
    running.progress(total, total, "policies")
    return JobOutcome({"tuning": str(tuning.pk), "policies": total})


def _generation(tuning: Tuning) -> list[tuple[str, Policy]]:
    """The policies to try next, with their names; empty if the search is finished."""
    room = tuning.limit - tuning.trials.count()
    if room <= 0:
        return []
    if not tuning.trials.exists():
        return _first(tuning)[:room]
    tried = [one for _, one in tried_of(tuning)]
    found = next_policies(tried, objective_of(tuning), min(room, GENERATION))
    return [("", policy) for policy in found]


def _first(tuning: Tuning) -> list[tuple[str, Policy]]:
    """The base version and all presets: the optimum may be far from the base."""
    try:
        base = from_dict(tuning.base.document)
    except InvalidPolicy as error:
        raise PermanentFailure(
            f"{tuning.base} cannot run in this release",
            f"Its document is not valid here: {error}.",
            "Save it as a new version and search from that.",
        ) from None
    found = {identity(base): (str(tuning.base), base)}
    for name, preset in PRESETS.items():
        if preset.steps:
            found.setdefault(identity(preset), (name, preset))
    return list(found.values())


def _summed(
    running: Running, tuning: Tuning, names: Sequence[str], policies: Sequence[tuple[str, Policy]]
) -> list[dict[str, Any]]:
    """The sums of each policy over the sessions, with one session in memory at a time; empty if no
    session can be read."""
    found: list[list[dict[str, Any]]] = [[] for _ in policies]
    done = tuning.trials.count()
    for recording in _recordings(running.team, names):
        made = []
        for _, policy in policies:
            running.progress(done, tuning.limit, "policies")
            made.append(figures_of(recording, policy).figures)
        for figures, one in zip(found, made, strict=True):
            figures.append(one)
    return [{**sums(figures), "sessions": len(figures)} for figures in found if figures]


def _recorded(team: Team, names: Sequence[str]) -> dict[str, Any]:
    """The recall of the sessions as recorded; a text that left a recording cannot be retrieved."""
    found = [recall(one.value, one.lived, one.index) for one in _recordings(team, names)]
    needs = sum(one.needs for one in found)

    def share(name: str) -> float | None:
        return sum(getattr(one, name) * one.needs for one in found) / needs if needs else None

    in_context, named = share("in_context"), share("named")
    lost = None if in_context is None or named is None else max(1 - in_context - named, 0.0)
    return {"needs": needs, "in_context": in_context, "named": named, "lost": lost}


def _recordings(team: Team, names: Sequence[str]) -> Iterator[Recording]:
    for name in names:
        session = Session.objects.for_team(team).filter(pk=name, step_count__gt=0).first()
        if session is None:
            continue
        try:
            yield recording_of(session)
        except (MissingBlob, DamagedBlob):
            log.warning(
                "session %s is skipped by a search: some of its content is missing", session.pk
            )


def _write(
    tuning: Tuning, policies: Sequence[tuple[str, Policy]], found: Sequence[dict[str, Any]]
) -> None:
    first = tuning.trials.count() + 1
    with transaction.atomic():
        TuningTrial.objects.bulk_create(
            TuningTrial(
                tuning=tuning,
                number=number,
                name=name,
                document=to_dict(policy),
                figures=figures,
            )
            for number, ((name, policy), figures) in enumerate(
                zip(policies, found, strict=True), start=first
            )
        )


def _hold_against(running: Running, tuning: Tuning) -> None:
    """Evaluate the frontier and the starting policies on the held-out sessions."""
    tried = tried_of(tuning)
    best = {id(one) for one in frontier([one for _, one in tried], objective_of(tuning))}
    wanted = [
        (trial, one)
        for trial, one in tried
        if trial.held is None and (id(one) in best or trial.name)
    ]
    if not tuning.held or not wanted:
        return
    policies = [(trial.name, one.policy) for trial, one in wanted]
    # If all held-out sessions are gone, the results remain unchecked.
    for (trial, _), figures in zip(
        wanted, _summed(running, tuning, tuning.held, policies), strict=False
    ):
        trial.held = figures
    TuningTrial.objects.bulk_update([trial for trial, _ in wanted], ["held"])
