"""The managed run equals a simulation, however it was split, shared or resumed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compaction import tokens
from compaction.context.edits import context_at
from compaction.policies.policy import Policy, Step, to_dict
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import Run as RunValue
from compaction.simulation.simulate import simulate
from compaction.strategies.compact_settings import Compact
from compaction.strategies.dedupe import Dedupe
from compaction.strategies.externalise import Externalise
from compaction.strategies.offload import Offload
from compaction.summaries.extract import extractive
from sessions.actions.accounts.teams import local_team
from sessions.actions.live import folds
from sessions.actions.live.folds import serving
from sessions.actions.live.managed import (
    NoSuchStep,
    catch_up,
    plan_at,
    plan_of,
    record_context,
)
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import ModelCall, Run, Session
from sessions.models.record import manifest
from sessions.models.record.values import blocks_of, recorded_session
from tests.sessions.made import reads, result, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

BOTH = Policy(
    "both",
    steps=(
        Step("offload", Offload(age=3, batch=3)),
        Step("compact", Compact(trigger=0.05, summary_tokens=400, user_tokens=300)),
    ),
)
"""Offloads often, and compacts at 3,000 of the 60,000 tokens that these tests give a model."""

ENTRY = Policy(
    "entry",
    steps=(
        Step("dedupe", Dedupe()),
        Step("externalise", Externalise(over=1_500)),
        Step("offload", Offload(age=8, batch=4)),
    ),
)
"""Shortens messages before the model sees them, and offloads what was cut."""


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def talk(steps: int, files: int = 1_000) -> list[list[records.Record]]:
    """An agent's messages, one list per append; every seventh step has a user message.

    It reads that many files in turn, and again with small changes; with few files, sometimes much
    more of them.
    """
    batches: list[list[records.Record]] = [[user("Find the port in the settings.", key="k")]]
    for step in range(1, steps + 1):
        name = step % files
        lines = range(150 if files < 9 and step % 9 == 0 else 50)
        body = "".join(f"def handler_{name}_{line}():\n    return {line}\n" for line in lines)
        body += f"# read {step // (2 * files)}"
        batches.append([reads(f"c{step}", f"t{step}", f"src/f{name}.py", key=f"a{step}")])
        batches[-1].append(result(f"t{step}", body, key=f"b{step}", error=step % 6 == 0))
        if step % 7 == 0:
            batches.append([says(f"d{step}", f"Part {step} is done.", key=f"e{step}")])
            batches.append([user(f"Go on with part {step}.", key=f"u{step}")])
    return batches


def send(*of: records.Record, policy: Policy | None = BOTH) -> Session:
    """Append to a session that has a policy from its first message on."""
    stored = append(local_team(), session(*of), tokens.counted, source="test").session
    if policy is not None and stored.policy_version is None:
        stored.policy_version = version_of(stored.team, policy.name, to_dict(policy), preset=False)
        stored.window = 60_000
        stored.save()
    return stored


def simulated(stored: Session, policy: Policy) -> RunValue:
    value = recorded_session(stored, window=stored.window_taken)
    return simulate(value, policy, lambda text: stored.scaled(tokens.count(text)), extractive)


def stored_run(run: Run) -> list[tuple[Any, ...]]:
    columns = manifest.columns(run)
    names = ("position", "from", "to", "kind", "tokens", "message", "flags", "edit", "closed")
    return list(zip(*(columns[name] for name in names), strict=True))


@pytest.mark.parametrize("policy", [BOTH, ENTRY, PRESETS["offload-first"], PRESETS["passthrough"]])
@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_managed_run_is_the_run_of_a_simulation(policy: Policy, lost: int):
    """Whether each process keeps its fold, rebuilds it each time, or sometimes."""
    seen: dict[int, list[tuple[int, str]]] = {}
    for number, batch in enumerate(talk(40, files=3 if policy is ENTRY else 1_000)):
        stored = send(*batch, policy=policy)
        if lost and number % lost == 0:
            folds.forget_all()
        if stored.blocks.filter(born=stored.step_count + 1).exclude(type="tool_use").exists():
            plan = catch_up(stored)
            seen[plan.step] = [(block.position, block.text) for block in plan.blocks]
            assert plan.missing == ()
    expected = simulated(stored, policy)
    run = serving(stored)
    assert run is not None
    made = expected.revisions
    rows = run.revisions.filter(step__lte=stored.step_count).order_by("number")
    assert [(r.number, r.step, r.trigger, r.reason) for r in rows] == [
        (r.number, r.step, r.trigger, r.reason) for r in made
    ]
    assert policy is not BOTH or {r.trigger for r in made} == {"batch", "window"}
    used = {edit.strategy for revision in made for edit in revision.edits}
    assert policy is not ENTRY or used == {"dedupe", "externalise", "offload"}
    assert policy is PRESETS["passthrough"] or len(made) > 4
    for step in range(1, stored.step_count + 1):
        context = context_at(expected.entries, step)
        assert [(p, b.text) for p, b in context.items()] == seen[step]
        assert [(b.position, b.text) for b in plan_at(stored, step).blocks] == seen[step]
    assert sorted((e.block.position, e.block.id, e.from_step) for e in expected.entries) == sorted(
        (b.position, b.id, step) for b, step in entries_of(run) if step <= stored.step_count
    )


def entries_of(run: Run) -> Iterator[tuple[Any, int]]:
    """Every entry of a run in the fold, with its first step."""

    def work(fold: folds.Fold) -> list[tuple[Any, int]]:
        return [(entry.block, entry.from_step) for entry in fold.state.entries]

    folds.forget_all()
    return iter(folds.with_fold(run.session, run, work))


def grown(steps: int = 24, policy: Policy | None = BOTH) -> Session:
    for batch in talk(steps):
        stored = send(*batch, policy=policy)
        catch_up(stored)
    return stored


def test_a_run_asked_for_step_by_step_decides_as_a_simulation():
    for batch in talk(24):
        stored = send(*batch)
    for step in range(1, stored.step_count + 2):
        plan = plan_at(stored, step)
    assert plan.step == stored.step_count + 1
    made = [r.step for r in simulated(stored, BOTH).revisions]
    assert len(made) > 1
    assert [r.step for r in plan.run.revisions.order_by("number")][: len(made)] == made


def test_nothing_is_decided_for_calls_that_were_made_without_it():
    for batch in talk(24):
        stored = send(*batch)
    plan = catch_up(stored)
    assert [r.step for r in plan.run.revisions.all()] == [stored.step_count + 1]
    assert plan.standing.used < sum(block.tokens for block in blocks_of(stored, with_text=False))


def test_a_context_that_was_handed_out_stays_what_it_was():
    handed = []
    for batch in talk(24):
        plan = catch_up(send(*batch))
        assert plan.seq == plan.session.message_count
        handed.append((record_context(plan, "anthropic"), plan))
    folds.forget_all()
    for context, plan in handed:
        again = plan_of(context)
        assert [b.text for b in again.blocks] == [b.text for b in plan.blocks]
        assert (again.step, again.revision, again.seq) == (plan.step, plan.revision, plan.seq)
        assert again.standing == plan.standing
        assert len(context.pk) == len("ctx_") + 22


def test_asking_again_changes_nothing():
    stored = grown()
    before = Run.objects.get(origin=Run.Origin.MANAGED)
    plan = catch_up(stored)
    folds.forget_all()
    assert catch_up(stored).blocks == plan.blocks
    after = Run.objects.get(pk=before.pk)
    assert (after.head, after.fold) == (before.head, before.fold)


def test_more_that_comes_before_a_call_belongs_to_its_step():
    stored = send(user("one", key="1"))
    assert [b.text for b in catch_up(stored).blocks] == ["one"]
    plan = catch_up(send(user("two", key="2")))
    assert (plan.step, [b.text for b in plan.blocks]) == (1, ["one", "two"])


def test_steps_beyond_the_next_are_refused():
    stored = send(user("one", key="1"))
    for step in (0, 2):
        with pytest.raises(NoSuchStep):
            plan_at(stored, step)


def test_a_rewind_leaves_the_managed_context_as_well():
    stored = grown(12)
    dropped = tuple(f"{letter}{step}" for step in (11, 12) for letter in "ab")
    stored = send(records.Rewind(dropped, key="r"), user("Another way.", key="n"))
    plan = catch_up(stored)
    said = [block.text for block in plan.blocks]
    assert said[-1] == "Another way."
    assert not any("handler_11_" in text or "handler_12_" in text for text in said)
    assert any("handler_10_" in text for text in said)
    revision = plan.run.revisions.get(trigger="rewind")
    assert revision.step == stored.step_count + 1
    folds.forget_all()
    assert catch_up(stored).blocks == plan.blocks


def test_recorded_summaries_are_left_out():
    made = [user("go", key="1"), reads("c1", "t1", "a.py", key="2"), result("t1", "A", key="3")]
    send(*made)
    summary = records.Message(
        "user", [{"type": "text", "text": "So far."}], key="5", kind="summary"
    )
    stored = send(*made, records.Compaction("auto", key="4"), summary)
    plan = catch_up(send(user("on", key="6")))
    assert [block.text for block in plan.blocks if block.type == "text"] == ["go", "on"]
    folds.forget_all()
    assert catch_up(stored).blocks == plan.blocks
    assert len(stored_run(plan.run)) == stored.block_count


def test_without_a_policy_the_recorded_context_is_handed_out():
    stored = grown(6, policy=None)
    send(records.Clear(("t1",), key="clear"), policy=None)
    dropped = ("a6", "b6")
    stored = send(records.Rewind(dropped, key="r"), user("Again.", key="n"), policy=None)
    plan = catch_up(stored)
    assert plan.run.origin == Run.Origin.RECORDED
    assert serving(stored) is None
    texts = [block.text for block in plan.blocks]
    assert texts[-1] == "Again."
    assert texts[2].startswith("[cleared")
    context = record_context(plan, "blocks")
    send(user("More.", key="m"), policy=None)
    assert plan_of(context).blocks == plan.blocks
    assert len(plan_at(stored, 2).blocks) == 3


def test_a_prompt_reported_for_our_own_context_counts():
    stored = grown(12)
    run = serving(stored)
    assert run is not None and run.head
    context = record_context(catch_up(stored), "anthropic")
    stored = send(*talk(13)[-1])
    call = ModelCall.objects.get(session=stored, step=context.step)
    call.uncached, call.context = context.tokens + 30_000, context.pk
    call.save()
    used = catch_up(stored).standing.used
    text = sum(block.tokens for block in catch_up(stored).blocks)
    assert used == text + 30_000
