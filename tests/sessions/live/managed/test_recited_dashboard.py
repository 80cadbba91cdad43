"""The recited dashboard of a live agent: equal to a simulation, and reproducible, including its
time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from compaction import tokens
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import simulate
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import folds
from sessions.actions.live.handing_out.recited import recited_at
from sessions.actions.live.managed import catch_up, plan_at, plan_of, record_context
from sessions.actions.policies.policies import preset_version
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import ManagedContext, Session
from sessions.models.record.model_calls import begun_before
from sessions.models.record.values import recorded_session
from tests.sessions.live.managed.test_recitation_managed import check_together, looks, talk
from tests.sessions.made import session

pytestmark = [pytest.mark.django_db, pytest.mark.store]

BEGAN = 1_700_000_000_000


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def timed(batch: list[records.Record], number: int) -> list[records.Record]:
    """Messages, each a minute after the previous one."""
    at = BEGAN + 60_000 * number
    return [replace(one, at=at) if isinstance(one, records.Message) else one for one in batch]


def send(*of: records.Record) -> Session:
    stored = append(local_team(), session(*of), tokens.counted, source="test").session
    if stored.policy_version is None:
        stored.policy_version = preset_version(stored.team, "seven-principles")
        stored.save()
    return stored


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_dashboard_is_what_a_simulation_has_and_can_be_had_again(lost: int) -> None:
    given: dict[int, str] = {}
    handed: list[tuple[str, object]] = []
    for number, batch in enumerate(talk(24)):
        stored = send(*timed(batch, number))
        if lost and number % lost == 0:
            folds.forget_all()
        plan = catch_up(stored)
        given[plan.step] = plan.ending.text
        handed.append((record_context(plan, "anthropic").pk, looks(plan)))
    last = given[max(given)]
    assert "<dashboard>" in last and "- src/f24.py: once, last at step" in last
    at = begun_before(stored, max(given))
    assert at is not None and at > BEGAN
    assert "<time>2023-11-14 22:" in last
    assert len({text.partition("</time>")[0] for text in given.values()}) > 20
    value = recorded_session(stored, window=stored.window_taken)
    policy = PRESETS["seven-principles"]
    run = simulate(value, policy, lambda text: stored.scaled(tokens.count(text)))
    answer = simulate_session(stored, "seven-principles")
    for step in run.steps:
        again = recited_at(stored, answer, step.step)
        assert (again.tokens, again.text) == (step.recited, given[step.step])
        assert plan_at(stored, step.step).ending.text == given[step.step]
    check_together(stored, answer, [step.step for step in run.steps])
    for name, then in handed:
        assert looks(plan_of(ManagedContext.objects.get(pk=name))) == then
