"""A live session's usage shows its token ratio, and simulations count with it."""

from __future__ import annotations

import pytest

from compaction.context.session import Usage
from compaction.policies.presets import PRESETS
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.lab.simulated_figures import figures_of, recording_of
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Session
from tests.sessions.made import reads, result
from tests.sessions.programs import Program
from tests.sessions.record.live_agent import Agent

pytestmark = pytest.mark.django_db
RATIO, HIDDEN = 1.5, 30_000


def _billed(agent: Agent, model: str = "claude-opus-4-6") -> list[int]:
    """Send 8 steps with results of 1,000 tokens and more, and the usage that a provider reports."""
    billed, seen = [], sum(agent.session.blocks.values_list("tokens", flat=True))
    for n in range(1, 9):
        billed.append(HIDDEN + round(RATIO * seen))
        usage = Usage(uncached=3, cache_read=billed[-1] - 3)
        sent = [
            reads(f"c{n}", f"t{n}", f"src/f{n}.py", key=f"k{n}a"),
            result(f"t{n}", "x" * (1_000 + 300 * n), key=f"k{n}b"),
        ]
        agent.send(*sent, records.Call(f"c{n}", model, None, usage))
        seen = sum(agent.session.blocks.values_list("tokens", flat=True))
        if n % 3 == 0:
            measure(agent.session)
    measure(agent.session)
    return billed


def test_simulations_count_as_usage_shows_and_the_session_as_before():
    agent = Agent()
    billed = _billed(agent)
    session = Session.objects.get(pk=agent.session.pk)
    before = session.token_ratio
    assert session.learned_ratio == 1500
    recording = recording_of(session)
    assert recording.permille == 1500
    assert recording.value.hidden == pytest.approx(HIDDEN, abs=2)
    found = figures_of(recording, PRESETS["passthrough"]).figures
    assert found["tokens_sent"] == pytest.approx(sum(billed), rel=0.0005)
    assert session.token_ratio == before  # plans of the managed run must not change


def test_pages_of_a_simulation_count_as_it_does():
    agent = Agent()
    program = Program(agent.session.team)
    billed = _billed(agent)
    run = simulate_session(Session.objects.get(pk=agent.session.pk), "passthrough")
    address = f"/sessions/{agent.session.pk}"
    shown = {
        name: program.get(f"{address}/manifest?run={name}")["session"]
        for name in ("recorded", str(run.pk))
    }
    session = Session.objects.get(pk=agent.session.pk)
    assert (shown["recorded"]["ratio"], shown["recorded"]["hidden"]) == (
        session.token_ratio,
        session.hidden_tokens,
    )
    simulated = shown[str(run.pk)]
    assert (simulated["ratio"], simulated["basis"]) == (1500, "calibrated")
    assert simulated["hidden"] == pytest.approx(HIDDEN, abs=2)
    assert run.figures["tokens_sent"] == pytest.approx(sum(billed), rel=0.0005)
    shown = program.get(address)["tokens"]
    assert shown["learned_ratio"] == 1500


def test_a_public_vocabulary_is_never_scaled():
    agent = Agent()
    _billed(agent, "gpt-5")
    session = Session.objects.get(pk=agent.session.pk)
    assert session.learned_ratio is None
    assert recording_of(session).permille == 1000
