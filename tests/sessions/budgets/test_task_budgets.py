"""Budgets that a policy sets for the tasks of its sessions."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.models import AuditEntry, Budget
from tests.sessions.programs import Program, assert_problem

pytestmark = [pytest.mark.django_db, pytest.mark.store, pytest.mark.usefixtures("jobs_wait")]


def _begin(program: Program, name: str, **fields: Any) -> None:
    assert program.ask("PUT", f"/sessions/{name}", fields).status_code in (200, 201)


def _limits() -> list[tuple[str, int | None, str]]:
    return list(Budget.objects.order_by("name").values_list("name", "tokens", "mode"))


def test_a_session_that_names_a_task_begins_its_budget(program: Program) -> None:
    _begin(program, "one", policy="sliding-window-long-task")
    _begin(program, "two", task="doors", policy="balanced")
    _begin(program, "three", task="zero", use_case_preset="long-task", token_budget_per_task=0)
    assert _limits() == []
    _begin(program, "one", task="ports")
    _begin(program, "four", task="ports", use_case_preset="long-task", token_budget_per_task=7)
    _begin(program, "five", task="walls", policy_overrides={"task_budget": 9})
    assert _limits() == [("ports", 300_000, "soft"), ("walls", 9, "soft")]
    noted = AuditEntry.objects.filter(action="budget.made").order_by("pk").first()
    assert noted is not None and noted.detail == {"tokens": 300_000}
    usage = {"input_tokens": 8, "output_tokens": 4}
    said = {"role": "assistant", "content": "Built.", "usage": usage}
    messages = [{"role": "user", "content": "Build."}, said]
    made = program.post("/sessions/five/messages", {"messages": messages})
    (state,) = made["budgets"]
    assert (state["scope"], state["key"], state["used"]["tokens"]) == ("task", "walls", 12)
    assert (state["state"], state["mode"]) == ("over", "soft")


@pytest.mark.parametrize("name", ["", "ports"])
def test_a_budget_that_people_made_stays(program: Program, name: str) -> None:
    Budget.objects.create(team=program.team, scope="task", name=name, tokens=5, mode="hard")
    _begin(program, "one", task="ports", policy="sliding-window-long-task")
    assert _limits() == [(name, 5, "hard")]


def test_a_limit_that_is_none(program: Program) -> None:
    for wrong in ("many", True, -1):
        given = {"task": "ports", "token_budget_per_task": wrong}
        assert_problem(program.ask("PUT", "/sessions/one", given), 422)
    assert _limits() == []
