"""Causes of cache breaks on the dashboard, by log format."""

from __future__ import annotations

import msgspec
import pytest
from django.utils import timezone

from sessions.actions.accounts.teams import local_team
from sessions.models import Run, Session
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from tests.sessions.pages import page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_cause_in_several_formats_has_a_cost_for_each() -> None:
    client, now = signed_in(), int(timezone.now().timestamp() * 1000)
    card = {"kind": "ttl", "step": 2, "title": "TTL expired", "tokens": 9_000, "advice": "Answer."}
    for name, cost in (("pi", 300_000), ("claude-code", 2_500_000), ("pi", None)):
        session = Session.objects.create(
            team=local_team(), external_id=f"{name} {cost}", ended_at=now, source=name,
            break_count=1, step_count=4,
        )  # fmt: skip
        columns = pack(msgspec.json.encode(Figures(causes=[{**card, "cost_microusd": cost}])))
        Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=columns)
    text = " ".join(page_of(client, "/dashboard/").text.split())
    assert "TTL expired claude-code: $2.50, 1 break pi: $0.3000, 2 breaks" in text
    (cause,) = client.get("/api/v1/dashboard").json()["causes"]
    assert cause["formats"] == [
        {"format": "claude-code", "breaks": 1, "cost_microusd": 2_500_000},
        {"format": "pi", "breaks": 2, "cost_microusd": 300_000},
    ]
