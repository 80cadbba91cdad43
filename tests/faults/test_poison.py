"""Content that crashes or hangs its job affects only its own session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contextlab.client import ContextLab
from tests.agent import Agent, Ledger
from tests.conftest import Server, wait_until
from tests.faults.store import in_data_dir

STEPS = 5


@pytest.mark.fault("C2", "C9")
def test_ingest_contexts_and_other_sessions_go_on(
    server_with: Callable[..., Server], tmp_path: Path
) -> None:
    server = server_with(DJANGO_SETTINGS_MODULE="tests.faults.poison_settings")
    lab = ContextLab(server.address, server.new_key())
    ledgers = {name: Ledger(tmp_path / name) for name in ("dies", "hangs", "healthy")}
    agents = [
        Agent(lab.session(name, policy="offload-first"), ledger) for name, ledger in ledgers.items()
    ]
    for agent in agents:
        agent.begin()
    for _ in range(STEPS):
        for agent in agents:
            assert agent.step().request["messages"]
    store = in_data_dir(tmp_path)
    unfinished = "SELECT 1 FROM agent_sessions_job WHERE state IN ('queued', 'running')"
    wait_until(lambda: not store.rows(unfinished))
    ended = store.rows("SELECT kind, state, attempts, problem FROM agent_sessions_job")
    assert {row[:3] for row in ended} == {("tend", "failed", 3), ("hang", "failed", 3)}
    faults = {"tend": "exited with code 7", "hang": "longer than 1 seconds"}
    assert not [row for row in ended if faults[row[0]] not in row[3]]
    measured = store.rows("SELECT external_id FROM agent_sessions_session WHERE measured")
    assert measured == [("healthy",)]
    for name, ledger in ledgers.items():
        assert len(ledger.entries()) == 2 * STEPS + 1
        assert len(lab.request("GET", f"sessions/{name}/messages")["messages"]) == 2 * STEPS + 3
        ledger.close()
    store.audit()
    lab.close()
    assert server.stop() == 0
