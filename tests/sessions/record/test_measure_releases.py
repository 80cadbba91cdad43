"""Measuring after an upgrade: what another release stored is measured again."""

from __future__ import annotations

import msgspec
import pytest

from sessions.actions.record import measure as measuring
from sessions.actions.record.measure import measure
from tests.sessions.record.test_measure_live import Agent, settling

pytestmark = [pytest.mark.django_db, pytest.mark.store]

__all__ = ["settling"]  # a fixture for every test here, too


def test_bases_of_another_release_are_left_and_everything_is_measured_again():
    agent = Agent()
    for number in range(12):
        agent.step(number % 10)
    measure(agent.session)
    settled = agent.run("recorded").settled
    before = agent.measured()
    older = {"found": [{"step": settled}], "table": b"", "engine": measuring.ENGINE}
    agent.session.runs.filter(origin="recorded").update(bases=msgspec.msgpack.encode(older))
    measure(agent.session)
    assert settled and agent.measured() == before
    assert measuring.Bases.stored(agent.run("recorded").bases).step == settled
