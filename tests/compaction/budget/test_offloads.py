"""How often policies offload, and when next."""

from __future__ import annotations

from compaction.budget.offloads import NextOffload, next_offload
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.strategies.offload import Offload

FIRST = PRESETS["offload-first"]


def test_the_first_offload_follows_from_the_settings() -> None:
    assert next_offload(FIRST, [], 8) == NextOffload(3, None), "age 5 and batch 5: at step 11"
    assert next_offload(FIRST, [], 11) == NextOffload(0, None)
    assert next_offload(FIRST, [], 22) is None, "there was nothing to offload"


def test_later_offloads_follow_from_the_past_ones() -> None:
    assert next_offload(FIRST, [11], 13) == NextOffload(3, 5)
    assert next_offload(FIRST, [11, 16, 26, 36], 38) == NextOffload(8, 10)
    assert next_offload(FIRST, [11, 16], 24) == NextOffload(2, 5), "one was skipped"


def test_without_a_batch_of_steps_only_the_past_is_known() -> None:
    turns = Policy("turns", steps=(Step("offload", Offload(unit="turns")),))
    for policy in (turns, PRESETS["balanced"]):
        assert next_offload(policy, [10, 20], 22) is None
        assert next_offload(policy, [10, 20, 40], 42) == NextOffload(13, 15)
        assert next_offload(policy, [10, 20, 30], 55) == NextOffload(0, 10)
    assert next_offload(PRESETS["passthrough"], [], 3) is None


def test_sentences() -> None:
    assert NextOffload(0, None).sentence == "First offload at the next call."
    assert NextOffload(1, 5).sentence == "Offloads about every 5 steps; next in about 1 step."
    now = NextOffload(0, 5)
    assert now.sentence == "Offloads about every 5 steps, and at the next call."
    assert NextOffload(0, 1).sentence == "Offloads at about every step."
