"""The budgets page, and approvals on the live page, without JavaScript."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sessions.actions.budgets.budgets import BudgetFields, put_budget
from sessions.actions.budgets.spending import PlannedCall
from sessions.actions.live.deliver import report_call
from sessions.actions.live.handing_out.next_call import check
from sessions.models import Approval, AuditEntry, Budget, Membership, ModelCall, Session, Team
from sessions.models.budgets.spent import projection_of
from tests.sessions.budgets.spending import OWNER, budget, running
from tests.sessions.pages import Page

pytestmark = pytest.mark.django_db


def of(role: str) -> Client:
    from django.contrib.auth.models import User

    from sessions.actions.accounts.teams import local_team

    person = User.objects.create_user(role)
    Membership.objects.create(user=person, team=local_team(), role=role)
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person)
    return client


def page(client: Client, address: str = "/budgets/") -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return Page(answer.content.decode()).markup


FORM = {"scope": "task", "name": "ferry", "period": "day", "tokens": "", "dollars": "2.5",
        "mode": "hard", "warn": "70", "active": "on"}  # fmt: skip


def test_an_empty_page_says_what_a_budget_is():
    text = page(of("owner"))
    assert "No budget yet" in text
    assert "Unknown: no call of the last 7 days reported its usage." in text
    assert "New budget" in text


def test_a_viewer_looks_and_changes_nothing():
    viewer = of("viewer")
    budget(mode="approval")
    check(running(), PlannedCall("c1", 2_000), timezone.now())
    text = page(viewer)
    assert "An owner or editor decides." in text
    assert "New budget" not in text
    assert viewer.post("/budgets/", FORM).status_code == 403
    row = Approval.objects.get()
    assert viewer.post(f"/budgets/approvals/{row.pk}/", {"decision": "grant"}).status_code == 403


def test_a_budget_is_made_changed_and_removed():
    owner = of("owner")
    made = owner.post("/budgets/", FORM, follow=True)
    assert "The budget of task ferry per day was created." in made.content.decode()
    row = Budget.objects.get()
    assert (row.microusd, row.tokens, row.warn, row.mode) == (2_500_000, None, 70, "hard")
    text = page(owner, f"/budgets/?change={row.pk}")
    assert "Change the budget of task ferry per day" in text
    assert 'value="2.5"' in text
    owner.post("/budgets/", FORM | {"tokens": "9000", "active": ""})
    row.refresh_from_db()
    assert (row.tokens, row.active) == (9_000, False)
    owner.post(f"/budgets/{row.pk}/remove/")
    assert not Budget.objects.exists()
    assert AuditEntry.objects.filter(actor="owner", action__startswith="budget.").count() == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dollars": ""}, "Enter a limit in tokens, in dollars, or both."),
        ({"tokens": "-1"}, "greater than or equal to 0"),
        ({"tokens": "many"}, "Enter a whole number."),
        ({"scope": "team"}, "Select a valid choice."),
        ({"warn": "0"}, "greater than or equal to 1"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
    ],
)
def test_what_is_wrong_stands_at_its_field(given: dict[str, Any], said: str):
    answer = of("owner").post("/budgets/", FORM | given)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Budget.objects.exists()


@pytest.mark.parametrize("to", ["budgets", "live"])
@pytest.mark.parametrize(("decision", "state"), [("grant", "granted"), ("refuse", "refused")])
def test_a_person_decides_where_he_sees_it(to: str, decision: str, state: str):
    owner = of("owner")
    budget(mode="approval")
    check(running(), PlannedCall("c1", 2_000), timezone.now())
    text = page(owner, f"/{to}/")
    assert "Waiting for a person" in text
    assert "Grant what the session run asks for" in text
    row = Approval.objects.get()
    given = {"decision": decision, "to": to, "more": "250"}
    answer = owner.post(f"/budgets/approvals/{row.pk}/", given, follow=True)
    assert answer.redirect_chain[0][0].startswith(f"/{to}/")
    assert (
        "Approved. The limit" if decision == "grant" else "Refused: "
    ) in answer.content.decode()
    row.refresh_from_db()
    assert row.state == state
    assert row.use.extra_tokens == (1_250 if decision == "grant" else 0)
    again = owner.post(f"/budgets/approvals/{row.pk}/", given, follow=True)
    assert "Someone else already decided about the session run." in again.content.decode()


def test_names_are_shown_as_they_are_and_never_as_markup():
    owner = of("owner")
    name = "<script>alert(1)</script>"
    budget("task", 1_000, mode="approval", name=name)
    check(running(task=name), PlannedCall("c1", 2_000), timezone.now())
    for address in ("/budgets/", "/live/"):
        text = page(owner, address)
        assert "<script>alert(1)" not in text
        assert "&lt;script&gt;alert(1)" in text


def test_the_live_page_says_which_budgets_are_near():
    owner = of("owner")
    budget()
    session = running()
    check(session, PlannedCall("c1", 850), timezone.now())
    text = page(owner, "/live/")
    assert "near their limit" in text
    assert "session run 85 %" in text


def test_what_a_grant_makes_of_the_limit_is_said_before_and_after():
    owner = of("owner")
    budget(mode="approval")
    check(running(), PlannedCall("c1", 2_000), timezone.now())
    text = page(owner)
    assert "A grant lifts the limit to 2.0k tokens" in text
    assert "with 250 more it is 2.2k tokens" in text
    address = f"/budgets/approvals/{Approval.objects.get().pk}/"
    answer = owner.post(address, {"decision": "grant", "more": "500"}, follow=True)
    assert "is now 2.5k tokens" in answer.content.decode()


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["unpriced-model"], "unknown"),
        (["unpriced-model", "claude-sonnet-4-5"], "$0.0032 at least"),
    ],
)
def test_dollars_of_calls_without_a_price_are_unknown_and_no_zero(models: list[str], said: str):
    put_budget(budget("agent", 0).team, BudgetFields("agent", "fixer", microusd=10**6), OWNER)
    session = running(agent="fixer")
    for number, model in enumerate(models):
        usage = {"input_tokens": 1_000, "output_tokens": 10}
        report_call(session, {"call": f"c{number}", "usage": usage, "model": model})
    text = page(of("owner"))
    assert f">{said}</td>" in text
    assert "$0</td>" not in text


def test_gauges_of_nothing_and_of_no_limit():
    owner = of("owner")
    put_budget(budget("agent", 0).team, BudgetFields("agent", "fixer", microusd=0), OWNER)
    check(running(agent="fixer"), PlannedCall("c1", 10), timezone.now())
    assert "100 % taken" in page(owner)


def test_what_days_like_the_last_come_to():
    now = datetime(2026, 11, 22, tzinfo=UTC)
    session = running()
    for number in range(7):
        report_call(session, {"call": f"c{number}", "usage": {"input_tokens": 900,
                                                              "output_tokens": 100}})  # fmt: skip
    at = int((now - timedelta(days=1)).timestamp() * 1000)
    ModelCall.objects.update(at=at, cost_microusd=70)
    ms = int(now.timestamp() * 1000)
    made = projection_of(session.team, ms)
    assert made is not None
    assert (made.tokens_a_day, made.microusd_a_day) == (1_000, 70)
    assert projection_of(session.team, ms + 8 * 86_400_000) is None
    assert projection_of(Team.objects.create(slug="x", name="x"), ms) is None
    ModelCall.objects.update(cost_microusd=None)
    unpriced = projection_of(session.team, ms)
    assert unpriced is not None
    assert unpriced.microusd_a_month is None
    Session.objects.update(demo=True)
    assert projection_of(session.team, ms) is None
