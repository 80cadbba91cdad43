"""The cache cost of an edit: one rule for managed and simulated runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.cache.economy import Rates, TTLSetting
from compaction.fold.fold import State, start
from compaction.policies.policy import Policy
from compaction.proposals.plan import Means
from compaction.simulation import simulate as simulation
from sessions.actions.live import folds
from sessions.actions.live.folds import serving
from sessions.actions.live.managed import catch_up
from sessions.importers import records
from sessions.models import Session
from tests.sessions.live.managed.test_managed import BOTH, send, simulated
from tests.sessions.made import says, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("ttl", ["recorded", "5m", "mixed"])
@pytest.mark.parametrize(
    ("model", "kept"),
    [("claude-sonnet-4-5", None), ("o3", 600_000), ("gpt-5.5", 24 * 3_600_000)],
)
def test_a_managed_run_reckons_with_the_rates_of_a_simulation(
    model: str,
    kept: int | None,
    ttl: TTLSetting,
    called: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    """The call was in February 2025, when o3 cost more, and wrote to the cache for an hour."""
    policy = replace(BOTH, name=f"both-{ttl}", ttl=ttl)
    stored = send(user("Find the port.", key="k"), policy=policy)
    if called:
        usage = records.Usage(uncached=100, cache_write_1h=2_000)
        call = records.Call("c1", model, 1_738_800_000_000, usage)
        send(says("c1", "It is 8080.", key="a1"), call, policy=policy)
    Session.objects.update(model=model)
    stored.refresh_from_db()
    reckoned: list[Rates] = []

    def begin(of: Policy, window: int, means: Means, hidden: int) -> State:
        reckoned.append(means.rates)
        return start(of, window, means, hidden)

    monkeypatch.setattr(simulation, "start", begin)
    simulated(stored, policy)
    run = serving(stored)
    assert run is not None
    catch_up(stored)
    rates, granted = folds.with_fold(stored, run, lambda fold: (fold.state.means.rates, fold.ttl))
    assert catch_up(stored).ttl == granted
    hour = {"recorded": "1h", "5m": "5m", "mixed": "mixed"}
    assert granted == (hour[ttl] if called else "5m"), "never longer than the client asked for"
    assert [rates] == reckoned
    asked = 3_600_000 if called and ttl == "recorded" else 300_000
    assert (rates.known, rates.ttl) == (True, kept or asked)
    assert model != "o3" or rates.write == (10_000 if called else 2_000)
