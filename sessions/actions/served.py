"""The served run of a session: what its policy made of it, kept up with what its agent sends."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.budget import Standing
from compaction.context import Block
from sessions.models import Run, ServedContext, Session


class NoSuchStep(ValueError):
    """A step that the session has not come to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the model is to see: `blocks` in order at `step`, after `revision`, up to message `seq`.

    `run` is the served run, or the recorded one of a session without a policy. `missing` says
    which artefacts would have been used but are not ready.
    """

    session: Session
    run: Run
    step: int
    revision: int
    seq: int
    blocks: tuple[Block, ...]
    standing: Standing
    missing: tuple[str, ...] = ()


def serving(session: Session) -> Run | None:
    """The served run of a session, made at the first need; None for a session without a policy."""
    raise NotImplementedError


def catch_up(session: Session, *, wait: float = 0) -> Plan:
    """The plan for the next model call, with everything taken in that is committed now.

    An artefact that is not ready is asked for (job `tend`); for up to `wait` seconds it is waited
    for, else the plan does without and says so in `missing`.
    """
    raise NotImplementedError


def plan_at(session: Session, step: int) -> Plan:
    """The plan as it was at a step. Raises NoSuchStep beyond the next model call."""
    raise NotImplementedError


def plan_of(served: ServedContext) -> Plan:
    """The very plan that was handed out, whatever came later."""
    raise NotImplementedError


def hand_out(plan: Plan, format: str) -> ServedContext:  # noqa: A002 - the API's own word
    """Record that a plan was handed out; its id is what the agent's usage report echoes."""
    raise NotImplementedError
