"""What leaves a context until its limit, simulated before it comes, and which facts leave."""

from __future__ import annotations

from compaction.policies.presets import PRESETS
from compaction.simulation.at_risk import leaving
from tests.build import Talk


def _talk(steps: int = 40) -> Talk:
    """Each step searches a file of its own; step 38 also reads a name that step 5 had shown."""
    talk = Talk()
    talk.user("Deploy it.")
    for number in range(steps):
        talk.respond()
        use = talk.call("Bash", {"command": f"grep -r NAME_{number}_x conf/part_{number}.cfg"})
        found = "\n".join(
            f"NAME_{number}_{row} = conf/part_{number}/{row}.ini" for row in range(60)
        )
        talk.result(use, found)
    talk.respond()
    talk.result(talk.call("Bash", {"command": "cat conf/part_5/7.ini"}), "done")
    return talk


def test_facts_used_lately_that_leave_come_first() -> None:
    session = _talk().session(window=60_000)
    found = leaving(session, PRESETS["sliding-window"], 20, 1_000, 1000)
    assert found is not None and found.count > len(found.facts) == 5
    assert 0 < found.removed < sum(block.tokens for block in session.blocks)
    used = [one.used for one in found.facts]
    assert used == sorted(used, reverse=True) and used[-1] > 20, "those used last come first"
    assert {one.after for one in found.facts} == {"lost"}
    texts = {block.id: block.text for block in session.blocks}
    assert all(one.fact in texts[one.block] for one in found.facts)


def test_nothing_is_at_risk_where_nothing_leaves() -> None:
    session = _talk().session(window=60_000)
    assert leaving(session, PRESETS["passthrough"], 20, 1_000, 1000) is None
    assert leaving(session, PRESETS["sliding-window"], 1, 1, 1000) is None, "it is far from full"
    assert leaving(Talk().session(), PRESETS["sliding-window"], 20, 1_000, 1000) is None


def test_what_only_arrives_later_is_not_at_risk() -> None:
    found = leaving(_talk(3).session(window=30_000), PRESETS["sliding-window"], 30, 1_000, 1000)
    assert found is None or not any(one.fact.startswith("growth") for one in found.facts)
