"""What read-backs cost: one more call for each step, and what it reads."""

from __future__ import annotations

from compaction.cache.uses import CacheUse
from compaction.prices.prices import Price
from compaction.simulation.charged import ASKED, charged

PRICE = Price("m", 3_000, 300, 3_750, 6_000, 15_000, "test", "2026-01-01")


def test_a_step_without_its_needs_pays_for_a_call_and_for_what_it_reads() -> None:
    uses = [CacheUse(step, "simulated", 9_000, 1_000, 0, 0) for step in (1, 2, 3)]
    assert charged(uses, [], PRICE) == 0
    call = 10_000 * 300 + ASKED * 15_000
    assert charged(uses, [(2, 0)], PRICE) == call // 1_000
    read = 400 * (3_750 + 5 * 300)
    assert charged(uses, [(2, 400)], PRICE) == (call + read) // 1_000
    assert charged(uses, [(2, 400), (3, 400)], PRICE) == 2 * (call + read) // 1_000
    assert charged(uses, [(7, 400)], PRICE) == 0, "no such call"
