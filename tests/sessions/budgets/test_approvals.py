"""Approvals: requests beyond a limit wait for a person."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from compaction.budget.spending import Amount
from sessions.actions.accounts import audit
from sessions.actions.accounts.teams import local_team
from sessions.actions.budgets import approvals, spending
from sessions.actions.budgets.approvals import CannotDecide, admit, decide
from sessions.models import Approval, AuditEntry, Session
from tests.sessions.budgets.spending import NOW, ask, budget, running

pytestmark = [pytest.mark.django_db, pytest.mark.store]


@pytest.fixture
def person() -> audit.Actor:
    return audit.person(User.objects.create_user("ada"))


@pytest.mark.parametrize("scope", ["session", "task", "agent"])
def test_at_every_level_a_person_is_asked_and_a_yes_lets_it_go(scope: str, person: audit.Actor):
    budget(scope, 1_000, mode="approval")
    session = running(task="ferry", agent="fixer")
    before = Session.objects.get().version
    waits = ask(session, "c1", 1_200)
    assert (waits["can_proceed"], waits["require_approval"]) == (False, True)
    assert ask(session, "c1", 1_200)["approval"] == waits["approval"]
    assert Approval.objects.count() == 1
    assert Session.objects.get().version > before, "open pages hear of it"
    decided = decide(Approval.objects.get().pk, person, NOW, granted=True)
    assert (decided.state, decided.decided_by) == ("granted", person.user)
    assert ask(session, "c1", 1_200)["can_proceed"]
    again = ask(session, "c2", 1)
    assert again["require_approval"]
    assert again["approval"] != waits["approval"]
    entry = AuditEntry.objects.get(action="approval.granted")
    assert (entry.actor, entry.detail["tokens"]) == ("ada", 1_200)


def test_a_yes_may_let_more_go(person: audit.Actor):
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    decide(Approval.objects.get().pk, person, NOW, granted=True, more=Amount(500))
    assert ask(session, "c1", 1_200)["can_proceed"]
    assert ask(session, "c2", 500)["can_proceed"]
    assert ask(session, "c3", 1)["require_approval"]


def test_a_no_holds_for_the_call_it_was_said_of(person: audit.Actor):
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    decide(Approval.objects.get().pk, person, NOW, granted=False)
    refused = ask(session, "c1", 1_200)
    assert (refused["can_proceed"], refused["require_approval"]) == (False, False)
    assert "a person refused" in refused["reason"]
    assert ask(session, "c2", 1_200)["require_approval"]
    with pytest.raises(CannotDecide):
        decide(Approval.objects.get(call="c1").pk, person, NOW, granted=True)


def test_who_waits_in_vain_is_let_go_by_a_higher_limit():
    budget(mode="approval")
    session = running()
    ask(session, "c1", 1_200)
    budget("session", 2_000, mode="approval")
    assert ask(session, "c1", 1_200)["can_proceed"]
    assert not Approval.objects.exists()


# Contexts


def test_a_context_is_not_handed_out_beyond_a_limit_but_to_who_reserved_it():
    session = running()
    assert admit(session, 500, 1, NOW).answer is None
    budget(limit=100 + spending.EXPECTED_OUTPUT, mode="hard")
    assert admit(session, 100, 1, NOW).answer is None, "exactly the limit is within it"
    refused = admit(session, 101, 1, NOW).answer
    assert refused is not None
    assert not refused["can_proceed"]
    assert (refused["estimate"]["tokens"], refused["estimated"]) == (1_101, True)
    ask(session, "c1", 1_000)
    assert admit(session, 101, 1, NOW).answer is None


def test_a_context_that_needs_a_yes_waits_under_its_step(person: audit.Actor):
    budget(mode="approval")
    session = running()
    refused = admit(session, 2_000, 3, NOW).answer
    assert refused is not None
    assert refused["approval"] == str(Approval.objects.get(call="step-3").pk)
    decide(Approval.objects.get().pk, person, NOW, granted=True)
    assert admit(session, 2_000, 3, NOW).answer is None
    assert approvals.approvals_of([local_team()]).count() == 1
