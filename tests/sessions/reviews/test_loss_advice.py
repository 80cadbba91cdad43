"""What is advised where a summary lost what was needed: a setting or a simulation that applies."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.policies.policies import named_version, save_version
from sessions.models import Revision, Run, Session
from sessions.views.reviews.loss_advice import LossAdvice, loss_advice

pytestmark = pytest.mark.django_db


def fact(kind: str, state: str = "lost", needed: int | None = 9) -> dict[str, Any]:
    return {"fact": "port_8417", "kind": kind, "state": state, "needed": needed}


@pytest.fixture
def session() -> Session:
    return Session.objects.create(team=local_team(), external_id="one", step_count=9)


def advised(
    session: Session, *facts: dict[str, Any], managed: bool = True, keeps: bool = False,
    may_write: bool = True,
) -> LossAdvice | None:  # fmt: skip
    version = named_version(local_team(), "offload-first")
    if keeps:
        document = deepcopy(version.document)
        for step in document["steps"]:
            if step["strategy"] == "compact":
                step["parameters"]["keep_failures"] = True
        version = save_version(local_team(), "own", document, "offload-first", "", None, COMMAND)
    origin = Run.Origin.MANAGED if managed else Run.Origin.RECORDED
    run = Run.objects.create(
        session=session, origin=origin, policy_version=version if managed else None
    )
    revision = Revision(run=run, number=1, step=3)
    return loss_advice(session, revision, facts, may_write=may_write)


def test_nothing_is_advised_where_nothing_lost_was_needed(session: Session) -> None:
    assert advised(session, fact("path", needed=None), fact("error", "kept")) is None


def test_a_lost_fact_leads_to_the_simulation_of_what_would_have_kept_it(session: Session) -> None:
    found = advised(session, fact("error"), fact("identifier"), managed=False)
    assert found is not None and "would have kept “port_8417”" in found.text
    assert found.button == "What would have kept it"
    assert found.url.startswith(f"/sessions/{session.pk}/why/?text=port_8417&run=recorded&step=9")
    assert found.lab_url == f"/lab/?by=hand&ids={session.pk}"


def test_a_lost_error_leads_to_the_setting_that_keeps_failed_calls(session: Session) -> None:
    found = advised(session, fact("error"))
    assert found is not None and "Keep failed calls verbatim" in found.text
    assert found.url == "/policies/offload-first/edit/?set=compact.keep_failures"


@pytest.mark.parametrize(
    "but",
    [{"keeps": True}, {"may_write": False}, {"managed": False}],
    ids=["kept already", "may not write", "recorded"],
)
def test_the_setting_is_not_named_where_it_changes_nothing(
    session: Session, but: dict[str, bool]
) -> None:
    found = advised(session, fact("error"), fact("path"), **but)
    assert found is not None and found.button == "What would have kept it"


def test_the_setting_is_named_for_errors_only(session: Session) -> None:
    found = advised(session, fact("path"))
    assert found is not None and found.button == "What would have kept it"
