"""Tunings: searches for policies with less cost and more recall, asked for and done."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction

from compaction.policies.policy import InvalidPolicy, Policy, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.policies.tuner import frontier, identity, next_policies
from sessions.actions import audit, jobs
from sessions.actions.attempts import Outcome, Refused, Running
from sessions.actions.choices import NoChoice, chosen_sessions, read_choice
from sessions.actions.policies import save_version
from sessions.actions.simulated_figures import Recording, figures_of, recording_of
from sessions.models import PolicyVersion, Session, Team, Tuning, TuningTrial
from sessions.models.blobs import DamagedBlob
from sessions.models.simulated_sums import sums
from sessions.models.tuned import found_by, objective_of, tried_of
from sessions.models.values import MissingBlob

log = logging.getLogger(__name__)

KIND = "tuning"
"""The kind of its job."""

TRIALS, MOST_TRIALS = 40, 400
"""Policies that a search tries: where nobody says, and at most."""

MOST_SESSIONS = 120
"""Sessions of one search at most, held ones included (ours: a trial takes seconds)."""

FEWEST_TO_HOLD = 4
"""With fewer sessions than this none is held back: there would be too few to search."""

GENERATION = 8
"""Policies that are tried at once: each session is read once for all of them."""


def ask(
    base: PolicyVersion,
    choice: Mapping[str, Any],
    objective: str,
    limit: int,
    actor: audit.Actor,
) -> Tuning:
    """A search that begins from a version, with its job under way.

    Every other of the chosen sessions is held back, by a draw that is the same for the same
    sessions. Raises NoChoice.
    """
    team = base.policy.team
    chosen = read_choice(choice)
    sessions = chosen_sessions(team, chosen)
    if len(sessions) > MOST_SESSIONS:
        raise NoChoice("limit", f"A search takes {MOST_SESSIONS} sessions at most.")
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
    """What was tried as a version of the team's own policy. Raises InvalidPolicy.

    It rests on the preset from which it differs least of those that the search began with.
    """
    tuning = trial.tuning
    note = f"Trial {trial.number} of a search {tuning}."
    based_on = _preset_of(tuning, next(one.like for one in found_by(tuning) if one.trial == trial))
    return save_version(tuning.team, name, trial.document, based_on, note, actor.user, actor)


def _preset_of(tuning: Tuning, like: str) -> str:
    """The preset behind a policy that a search began with: one of these, or the base's own."""
    policy = tuning.base.policy
    found = policy.name if policy.preset else policy.based_on
    return like if like in PRESETS else found if found in PRESETS else ""


def tuning_job(running: Running) -> Outcome:
    """The job kind `tuning`: payload {tuning}.

    Generation by generation, each written at once; an attempt goes on where the one before it
    ended. Last, the frontier and what the search began with are put to the sessions held back.
    """
    rows = Tuning.objects.for_team(running.team).select_related("base__policy")
    tuning = rows.filter(pk=running.payload["tuning"]).first()
    if tuning is None:
        raise Refused("The search is gone", "It was deleted meanwhile.", "Nothing to do.")
    while policies := _generation(tuning):
        done = tuning.trials.count()
        running.progress(done, tuning.limit, "policies")
        sums_of = _summed(running, tuning, tuning.sessions, policies)
        if not sums_of:
            raise Refused(
                "None of its sessions can be read",
                "They were deleted meanwhile, or have no model call.",
                "Choose other sessions.",
            )
        _write(tuning, policies, sums_of)
    _hold_against(running, tuning)
    total = tuning.trials.count()
    running.progress(total, total, "policies")
    return Outcome({"tuning": str(tuning.pk), "policies": total})


def _generation(tuning: Tuning) -> list[tuple[str, Policy]]:
    """The policies to try next with their names; empty when the search is over."""
    room = tuning.limit - tuning.trials.count()
    if room <= 0:
        return []
    if not tuning.trials.exists():
        return _first(tuning)[:room]
    tried = [one for _, one in tried_of(tuning)]
    found = next_policies(tried, objective_of(tuning), min(room, GENERATION))
    return [("", policy) for policy in found]


def _first(tuning: Tuning) -> list[tuple[str, Policy]]:
    """The version that the search begins from, then the presets: the best may lie elsewhere."""
    try:
        base = from_dict(tuning.base.document)
    except InvalidPolicy as error:
        raise Refused(
            f"{tuning.base} does not run any more",
            f"This release does not take what it says: {error}.",
            "Save it as a new version, and search from that.",
        ) from None
    found = {identity(base): (str(tuning.base), base)}
    for name, preset in PRESETS.items():
        if preset.steps:
            found.setdefault(identity(preset), (name, preset))
    return list(found.values())


def _summed(
    running: Running, tuning: Tuning, names: Sequence[str], policies: Sequence[tuple[str, Policy]]
) -> list[dict[str, Any]]:
    """The sums of each policy over the sessions, one of which is in memory at a time; none where
    no session can be read."""
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


def _recordings(team: Team, names: Sequence[str]) -> Iterator[Recording]:
    for name in names:
        session = Session.objects.for_team(team).filter(pk=name, step_count__gt=0).first()
        if session is None:
            continue
        try:
            yield recording_of(session)
        except (MissingBlob, DamagedBlob):
            log.warning("session %s is left out of a search: some of it is missing", session.pk)


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
    """Put the frontier, and what the search began with, to the sessions that it never saw."""
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
    # Where all that was held back is gone by now, what was found stands without a judge.
    for (trial, _), figures in zip(
        wanted, _summed(running, tuning, tuning.held, policies), strict=False
    ):
        trial.held = figures
    TuningTrial.objects.bulk_update([trial for trial, _ in wanted], ["held"])
