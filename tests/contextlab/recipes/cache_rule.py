"""Tests that the cache rule recipe works; run by test_recipes.py in a copy with its file."""

from __future__ import annotations

from compaction.cache.rules import rules_of
from compaction.context.session import Call
from compaction.policies.policy import Policy
from compaction.prices.prices import Price
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import simulate
from tests.build import Talk, rough

PRICE = Price("acme-1", 2000, 200, 2000, 2000, 10_000, "made up", "2026-11-22")


def test_a_simulation_follows_it() -> None:
    talk = Talk()
    talk.user("word " * 4_000)
    for _ in range(2):
        talk.respond()
        talk.say("done")
        talk.user("and now?")
    run = simulate(talk.session(), Policy("none"), rough)
    calls = [Call(step, "acme-1", step * 1_000) for step in (1, 2)]
    found = simulate_cache(run, calls, Terms(PRICE, rules=rules_of("acme-1")))
    assert [use.read for use in found.uses[:2]] == [0, 5_000]
