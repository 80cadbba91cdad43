"""Recitation for live agents: equal to a simulation, and reproducible."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction import tokens
from compaction.context.blocks import Block
from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from compaction.simulation.simulate import simulate
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live import folds
from sessions.actions.live.folds import serving
from sessions.actions.live.handing_out.recited import recited_at, recited_by_step
from sessions.actions.live.managed import Plan, catch_up, plan_at, plan_of, record_context
from sessions.actions.policies.policies import preset_version, version_of
from sessions.actions.record.append import append
from sessions.importers import records
from sessions.models import ManagedContext, Run, Session
from sessions.models.record import manifest, tail
from sessions.models.record.values import recorded_session
from tests.sessions.made import reads, result, says, session, user

pytestmark = [pytest.mark.django_db, pytest.mark.store]

PRESET = PRESETS["recitation"]


@pytest.fixture(autouse=True)
def no_folds() -> Iterator[None]:
    folds.forget_all()
    yield
    folds.forget_all()


def uses(call: str, tool_call: str, tool: str, given: records.Json) -> records.Message:
    block = {"type": "tool_use", "id": tool_call, "name": tool, "input": given}
    return records.Message("assistant", [block], key=call, call=call)


def talk(steps: int) -> list[list[records.Record]]:
    """An agent's messages, append by append: reads, and sometimes an edit or a new list."""
    batches: list[list[records.Record]] = [[user("Find the port.", key="k")]]
    for step in range(1, steps + 1):
        if step % 5 == 2:
            todos = [{"content": f"part {step}", "status": "in_progress"}]
            asked = uses(f"a{step}", f"t{step}", "TodoWrite", {"todos": todos})
        elif step % 5 == 4:
            given = {"file_path": f"src/f{step}.py", "old_string": "a", "new_string": "b"}
            asked = uses(f"a{step}", f"t{step}", "Edit", given)
        else:
            asked = reads(f"a{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}")
        body = "".join(f"def handler_{step}_{line}(): ...\n" for line in range(40))
        answer = result(f"t{step}", body if step % 5 in (0, 1, 3) else "done", key=f"b{step}")
        batches.append([asked, answer])
        if step % 7 == 0:
            batches.append([says(f"d{step}", "Done so far.", key=f"e{step}")])
            batches.append([user(f"Go on with part {step}.", key=f"u{step}")])
    return batches


def send(*of: records.Record) -> Session:
    stored = append(local_team(), session(*of), tokens.counted, source="test").session
    if stored.policy_version is None:
        stored.policy_version = preset_version(stored.team, "recitation")
        stored.save()
    return stored


def looks(plan: Plan) -> tuple[tuple[Block, ...], object, int]:
    return plan.blocks, plan.ending, plan.standing.used


def check_together(stored: Session, simulated: Run, steps: list[int]) -> None:
    """What was recited at many steps, found at once, is what is found for each."""
    managed = serving(stored)
    assert managed is not None and len(steps) > 20
    for found in (simulated, managed):
        alone = [(step, recited_at(stored, found, step)) for step in steps]
        assert list(recited_by_step(stored, found, steps)) == alone


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_what_is_served_is_what_a_simulation_has(lost: int) -> None:
    given: dict[int, tuple[int, str]] = {}
    for number, batch in enumerate(talk(30)):
        stored = send(*batch)
        if lost and number % lost == 0:
            folds.forget_all()
        plan = catch_up(stored)
        given[plan.step] = plan.ending.tokens, plan.ending.text
        assert plan.standing.used == sum(b.tokens for b in plan.blocks) + plan.ending.tokens
    value = recorded_session(stored, window=stored.window_taken)
    run = simulate(value, PRESET, lambda text: stored.scaled(tokens.count(text)))
    assert [given[step.step][0] for step in run.steps] == [step.recited for step in run.steps]
    found = simulate_session(stored, "recitation")
    for step in run.steps:
        again = recited_at(stored, found, step.step)
        assert (again.tokens, again.text) == given[step.step]
    check_together(stored, found, [step.step for step in run.steps])
    assert "part 27" in given[run.steps[-1].step][1]
    figures = tail.figures(tail.stored(found))
    assert figures.steps["recited"] == [step.recited for step in run.steps]
    assert figures.steps["prompt"] == [step.total + run.hidden + step.added for step in run.steps]
    assert manifest.columns(found)["tokens"]


def test_a_context_that_was_handed_out_is_recited_the_same_for_ever() -> None:
    handed: list[tuple[str, object]] = []
    asked: dict[int, object] = {}
    for batch in talk(22):
        stored = send(*batch)
        plan = catch_up(stored)
        handed.append((record_context(plan, "anthropic").pk, looks(plan)))
        asked[plan.step] = looks(plan)
    managed = Run.objects.get(session=stored, origin=Run.Origin.MANAGED)
    for lost in (False, True):
        for name, then in handed:
            if lost:
                folds.forget_all()
            context = ManagedContext.objects.get(pk=name)
            again = plan_of(context)
            assert looks(again) == then
            assert context.recited == again.ending.tokens
    for step, then in asked.items():
        assert looks(plan_at(stored, step)) == then
        assert recited_at(stored, managed, step) == plan_at(stored, step).ending


def test_a_document_from_before_there_were_recitations_still_runs() -> None:
    document = to_dict(PRESETS["offload-first"])
    del document["recite"]
    for step in document["steps"]:
        for new in ("only", "keep_failures"):
            if step["strategy"] in ("offload", "compact") and new in step["parameters"]:
                del step["parameters"][new]
    stored = send(*talk(3)[0])
    version = version_of(stored.team, "older", document, preset=False)
    stored.policy_version = version
    stored.save()
    plan = catch_up(send(*[record for batch in talk(9)[1:] for record in batch]))
    assert (plan.ending.text, plan.ending.once) == ("", ())
    assert recited_at(stored, plan.run, 3).text == ""


def test_a_run_without_a_policy_recites_nothing() -> None:
    stored = append(local_team(), session(*talk(3)[0]), tokens.counted, source="test").session
    run = Run.objects.get(session=stored, origin=Run.Origin.RECORDED)
    assert recited_at(stored, run, 1).text == ""
