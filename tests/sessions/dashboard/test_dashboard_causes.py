"""Causes of cache breaks of the dashboard's API, by log format."""

from __future__ import annotations

import msgspec
import pytest
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.models import Run, Session
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from tests.sessions.pages import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


CARD = {"kind": "ttl", "step": 2, "title": "TTL expired", "tokens": 9_000, "advice": "Answer."}


def broke(name: str, source: str, cost: int | None, kind: str = "ttl") -> None:
    """A session with one cache break."""
    session = Session.objects.create(
        team=local_team(), external_id=name, ended_at=int(timezone.now().timestamp() * 1000),
        source=source, break_count=1, step_count=4,
    )  # fmt: skip
    figures = Figures(causes=[{**CARD, "kind": kind, "cost_microusd": cost}])
    columns = pack(msgspec.json.encode(figures))
    Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=columns)


def test_causes_have_a_cost_for_each_format_if_there_are_several() -> None:
    client = signed_in()
    broke("a", "pi", 300_000)
    broke("b", "pi", None)
    broke("c", "claude-code", 2_500_000)
    broke("d", "pi", None, "model")
    ttl, model = client.get("/api/v1/dashboard").json()["causes"]
    assert ttl["formats"] == [
        {"format": "claude-code", "breaks": 1, "cost_microusd": 2_500_000},
        {"format": "pi", "breaks": 2, "cost_microusd": 300_000},
    ]
    assert model["formats"] == [{"format": "pi", "breaks": 1, "cost_microusd": None}]
