"""Twenty compactions of demo sessions, with facts removed and others added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.window import Window
from compaction.summaries.extract import extractive
from compaction.tokens import Counted
from sessions import demo
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.models import Session
from sessions.models.record.replaced import replaced, summarised
from sessions.models.record.values import recorded_session
from tests.build import rough
from tests.planted import Case, cases_of, inventions, losses

pytestmark = pytest.mark.django_db

NOW = 1_795_000_000_000
PLAYED = ("demo:healthy", "demo:breaks", "demo:long", "demo:big")
WINDOWS = (
    (Policy("nine", steps=(Step("compact", Compact(trigger=0.5, user_tokens=2_000)),)), 100_000),
    (Policy("window", steps=(Step("window", Window(budget=32_000)),)), 32_000),
)
EACH = 8
"""Compactions that are taken of one session under one policy."""


def count(text: str) -> Counted:
    return Counted(rough(text))


@pytest.fixture
def cases() -> list[Case]:
    """The recorded compactions of the demo, and simulated ones in narrow windows."""
    others = set(demo.EXTERNAL_IDS) - set(PLAYED)
    recorded: list[Case] = []
    simulated: list[Case] = []
    for group in demo.play(NOW, count, without=others):
        session = append(local_team(), group[0], count, source="demo").session
        recorded += _recorded(session)
        simulated += _simulated(session)
    left = 20 - len(recorded)
    return recorded + [simulated[i * len(simulated) // left] for i in range(left)]


def _recorded(session: Session) -> Iterator[Case]:
    for revision in summarised(session):
        one = replaced(session, revision)
        assert one is not None
        yield Case(f"recorded r{revision.number}", one.span, one.summary, one.standing, one.refs)


def _simulated(session: Session) -> Iterator[Case]:
    value = recorded_session(session, window=0)
    for policy, window in WINDOWS:
        run = simulate(replace(value, window=window, hidden=0), policy, rough, extractive)
        yield from list(cases_of(run, f"{policy.name} {session.external_id}"))[:EACH]


def test_what_is_planted_is_found(cases: list[Case]) -> None:
    assert len(cases) == 20
    taken_out = 0
    for number, case in enumerate(cases):
        ledger = case.ledger()
        if not case.name.startswith("recorded"):
            invented = [fact.fact for fact in ledger.facts if fact.state == "unsupported"]
            assert invented == [], f"the extractive summary of {case.name} makes nothing up"
        for planted, fact in losses(case, 3):
            states = {one.key: one.state for one in planted.ledger().facts}
            assert states[fact.key] == "lost", (case.name, fact)
            taken_out += 1
        before = {fact.key for fact in ledger.facts if fact.state == "unsupported"}
        planted, made = inventions(case, number)
        after = [one for one in planted.ledger().facts if one.state == "unsupported"]
        assert {one.fact for one in after if one.key not in before} == set(made), case.name
    assert taken_out >= 50
