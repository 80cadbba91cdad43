"""A first context after more than one request can process."""

from __future__ import annotations

import pytest

from sessions.actions.live import folds, managed
from sessions.actions.live.managed import catch_up
from tests.sessions.live.managed.test_managed import send, stored_run, talk
from tests.sessions.live.managed.test_managed_changes import no_folds, run_of
from tests.sessions.programs import Program, assert_problem

__all__ = ["no_folds"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.mark.parametrize("lost", [False, True])
def test_what_one_request_cannot_process_the_next_ones_do(
    lost: bool, monkeypatch: pytest.MonkeyPatch
):
    """Step by step, in one process or in another each time; the context is that of one request."""
    stored = send(*[record for batch in talk(12) for record in batch])
    whole = catch_up(stored)
    made = stored_run(whole.run)
    whole.run.delete()
    monkeypatch.setattr(managed, "READING_SECONDS", 0.0)
    for step in range(1, stored.step_count + 1):
        with pytest.raises(managed.StillReading):
            catch_up(stored)
        assert run_of(stored).steps == step
        if lost:
            folds.forget_all()
    plan = catch_up(stored)
    assert (plan.step, plan.blocks, plan.ending) == (whole.step, whole.blocks, whole.ending)
    assert stored_run(plan.run) == made
    assert made


def test_an_agent_is_asked_to_come_again(program: Program, monkeypatch: pytest.MonkeyPatch):
    said = {"role": "assistant", "content": "One."}
    messages = [{"role": "user", "content": "Go."}, said, {"role": "user", "content": "On."}]
    monkeypatch.setattr(managed, "READING_SECONDS", 0.0)
    answer = program.ask("POST", "/sessions/run/steps", {"messages": messages})
    assert_problem(answer, 503)
    assert answer["Retry-After"] == "1"
    context = program.get("/sessions/run/context")
    assert len(context["messages"]) == len(messages)
