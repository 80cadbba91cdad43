"""Rollouts, and the people who propose and accept them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User

from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies import rollouts
from sessions.actions.policies.bounds import defaults
from sessions.actions.policies.first_policy import bucket
from sessions.actions.policies.policies import version_of
from sessions.actions.policies.rollout_rules import Act
from sessions.models import (
    Membership,
    PolicyVersion,
    Rollout,
    Team,
)

State = Rollout.State


def person(role: str, team: Team | None = None, name: str = "") -> audit.Actor:
    """A user with that role, created if missing."""
    found, made = User.objects.get_or_create(username=name or role)
    if made:
        Membership.objects.create(user=found, team=team or local_team(), role=role)
    return audit.person(found)


def version(name: str = "careful", reserve: int = 7, team: Team | None = None) -> PolicyVersion:
    document = {"name": name, "steps": [], "reserve": reserve}
    return version_of(team or local_team(), name, document, preset=False)


def proposed(of: PolicyVersion | None = None, **given: Any) -> Rollout:
    made = of or version()
    return rollouts.propose(made, "try it", defaults(), person("editor"), **given)


def running(share: int = 10, of: PolicyVersion | None = None) -> Rollout:
    made = rollouts.accept(proposed(of), person("owner"))
    while made.share < share:
        stage = rollouts.next_stage(made)
        assert stage is not None
        made = rollouts.widen(made, stage, person("owner"))
    return made


def in_state(state: str) -> Rollout:
    owner = person("owner")
    if state == State.PROPOSED:
        return proposed()
    if state == State.DECLINED:
        return rollouts.decline(proposed(), owner)
    made = running(100 if state == State.COMPLETE else 10)
    if state == State.PAUSED:
        return rollouts.pause(made, owner)
    return rollouts.roll_back(made, owner) if state == State.ROLLED_BACK else made


def do(act: Act, rollout: Rollout, actor: audit.Actor) -> Rollout:
    if act == "widen":
        return rollouts.widen(rollout, rollouts.next_stage(rollout) or 100, actor)
    acts: dict[str, Callable[[Rollout, audit.Actor], Rollout]] = {
        "accept": rollouts.accept, "decline": rollouts.decline, "pause": rollouts.pause,
        "resume": rollouts.resume, "roll_back": rollouts.roll_back,
    }  # fmt: skip
    return acts[act](rollout, actor)


def ids(rollout: Rollout, *, inside: bool, count: int = 1) -> list[str]:
    """External ids that fall into the rollout's share, or do not."""
    names = (f"run {number}" for number in range(10_000))
    return [n for n in names if (bucket(rollout, n) < rollout.share) == inside][:count]
