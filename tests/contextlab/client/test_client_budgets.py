"""The client and budgets: a call beyond a limit is an error, not a way around it."""

from __future__ import annotations

import anthropic
import pytest

from contextlab.client import ContextLab, OverBudget, wrap
from tests.conftest import Server
from tests.contextlab.client.test_client import claude, lab, model
from tests.provider import Provider

__all__ = ["claude", "lab", "model"]


def limit(served: Server, session: str, tokens: int, mode: str) -> None:
    """Set a limit, as a person does in the browser."""
    wanted = {"scope": "session", "name": session, "tokens": tokens, "mode": mode}
    served.ask("PUT", "/api/v1/budgets", json=wanted).raise_for_status()


def test_a_call_beyond_a_budget_is_an_error_that_says_why(served: Server, lab: ContextLab):
    session = lab.session("thrifty", model="claude-sonnet-5")
    session.append({"role": "user", "content": "Go."})
    limit(served, "thrifty", 5_000, "hard")
    assert session.reserve("c1", 4_000, heed_advice=True)["can_proceed"]
    assert session.context().id, "what is reserved is let go"
    with pytest.raises(OverBudget, match="5,000 tokens") as error:
        session.reserve("c2", 4_000)
    assert not error.value.require_approval
    assert error.value.budgets[0]["reserved"]["tokens"] == 4_000
    assert (session.release("c1"), session.release()) == (1, 0)
    assert session.reserve("c2", 4_000)["can_proceed"]


def test_a_wrapped_client_does_not_go_around_a_budget(
    served: Server, lab: ContextLab, model: Provider, claude: anthropic.Anthropic
):
    lab.session("broke", model="claude-sonnet-5")
    limit(served, "broke", 0, "approval")
    managed = wrap(claude, session="broke", server=lab)
    with pytest.raises(OverBudget) as error:
        managed.messages.create(
            model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "Go."}]
        )
    assert error.value.require_approval
    assert lab.request("GET", f"approvals/{error.value.approval}")["state"] == "waiting"
    assert not model.bodies
