"""Simulated runs: stored so that every step has the context that the fold made."""

from __future__ import annotations

import pytest

from compaction import tokens
from compaction.context.edits import context_at
from compaction.policies.policy import from_dict
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import simulate
from compaction.summaries.extract import extractive
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.policies.policies import preset_version, version_of
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Block, PolicyVersion, Run, Session
from sessions.models.record import manifest
from sessions.models.record.lived import lived_run
from sessions.models.record.values import contents, recorded_session
from tests.sessions.made import reads, result, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def long_session(steps: int = 30) -> Session:
    made: list[records.Record] = [user("Find the port in the settings.", key="k")]
    for step in range(1, steps + 1):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        body = "".join(f"def handler_{step}_{line}():\n    return {line}\n" for line in range(60))
        made.append(result(f"t{step}", body, key=f"b{step}"))
    stored = append(local_team(), session(*made), tokens.counted, source="test").session
    measure(stored)
    return stored


def columns_at(run: Run, step: int) -> list[tuple[int, int]]:
    """(position, scaled tokens) of the context at a step, from the manifest."""
    columns = manifest.columns(run)
    scaled = run.session.scaled
    return [
        (position, scaled(count))
        for position, count, start, end in zip(
            columns["position"], columns["tokens"], columns["from"], columns["to"], strict=True
        )
        if start <= step and (end == 0 or step < end)
    ]


@pytest.mark.parametrize("preset", ["offload-first", "sliding-window"])
def test_the_stored_run_is_the_run_that_was_simulated(preset: str):
    stored = long_session()
    run = simulate_session(stored, preset)
    value = recorded_session(stored, window=stored.window_taken)
    again = simulate(
        value, PRESETS[preset], lambda text: stored.scaled(tokens.count(text)), extractive
    )
    assert again.revisions, "the session is long enough for this preset to act"
    for step in range(1, stored.step_count + 1):
        expected = sorted(
            (block.position, block.tokens) for block in context_at(again.entries, step).values()
        )
        assert sorted(columns_at(run, step)) == expected
    assert run.figures["tokens_sent"] == again.sent + again.preludes
    if preset == "sliding-window":
        # 75 % of its budget of 32,000, drawn on whole prompts.
        assert run.figures["trigger_tokens"] == 24_000 + again.hidden + again.steps[0].added
    assert run.head == len(again.revisions) == run.revisions.count()


def test_every_replaced_original_is_still_there_byte_for_byte():
    stored = long_session()
    before = contents(stored, list(stored.blocks.values_list("sha", flat=True)))
    run = simulate_session(stored, "offload-first")
    targets = Block.objects.filter(entries__run=run, entries__closed_by__isnull=False)
    assert targets.exists()
    assert contents(stored, list(targets.values_list("sha", flat=True))).items() <= before.items()


def test_simulating_again_replaces_the_run_of_that_version():
    stored = long_session(12)
    first = simulate_session(stored, "offload-first")
    second = simulate_session(stored, "offload-first")
    assert first.pk != second.pk
    assert Run.objects.filter(origin=Run.Origin.SIMULATED).get() == second


def test_recorded_summaries_do_not_stand_in_a_simulation():
    made = session(
        user("go", key="1"),
        reads("c1", "t1", "a.py", key="2"),
        result("t1", "A" * 50, key="3"),
        records.Compaction("auto", key="4"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="5", kind="summary"),
        reads("c2", "t2", "b.py", key="6"),
        result("t2", "B" * 50, key="7"),
    )
    stored = append(local_team(), made, tokens.counted, source="test").session
    measure(stored)
    recorded = Run.objects.get(origin=Run.Origin.RECORDED)
    run = simulate_session(stored, "offload-first")
    assert [position for position, _ in columns_at(recorded, 2)] == [3]
    assert [position for position, _ in columns_at(run, 3)] == [0, 1, 2, 4, 5]


def test_unknown_figures_stay_unknown():
    stored = long_session(12)
    figures = simulate_session(stored, "offload-first").figures
    assert figures["cost_microusd"] is None, "claude-x has no price"
    assert figures["window_assumed"] is True


def test_a_policy_version_is_made_once_for_each_text():
    team = local_team()
    assert preset_version(team, "offload-first") == preset_version(team, "offload-first")
    changed = preset_version(team, "offload-first").document | {"reserve": 1}
    newer = version_of(team, "offload-first", changed, preset=True)
    assert (newer.number, PolicyVersion.objects.count()) == (2, 2)
    assert from_dict(newer.document).reserve == 1


def test_recorded_contexts_can_be_priced_by_the_rules_of_a_simulation():
    made = session(
        user("go", key="1"),
        reads("c1", "t1", "a.py", key="2"),
        result("t1", "A\n" * 900, key="3"),
        reads("c2", "t2", "b.py", key="4"),
        result("t2", "B\n" * 900, key="5"),
        records.Clear(("t1",), key="6"),
        reads("c3", "t3", "c.py", key="7"),
        records.Compaction("auto", key="8"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="9", kind="summary"),
        reads("c4", "t4", "d.py", key="10"),
    )
    stored = append(local_team(), made, tokens.counted, source="test").session
    measure(stored)
    run = Run.objects.get(origin=Run.Origin.RECORDED)
    lived = lived_run(stored, run)
    for step in lived.steps:
        assert step.total == sum(count for _, count in columns_at(run, step.step))
    kept = [step.unchanged_prefix for step in lived.steps]
    whole = [step.total for step in lived.steps]
    # S3 keeps everything before the cleared result, S4 nothing before the summary.
    assert kept[:2] == [0, whole[0]]
    assert 0 < kept[2] < whole[1]
    assert kept[3] == 0
    assert [step.revision for step in lived.steps] == [None, None, 1, 2]
