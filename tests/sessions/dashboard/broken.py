"""Sessions with cache breaks, and the fixes that a dashboard lists."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import msgspec
from django.utils import timezone

from compaction.cache.causes import AVOIDABLE
from sessions.actions.accounts.teams import local_team
from sessions.models import BreakTotals, Run, Session
from sessions.models.record.manifest import pack
from sessions.models.record.tail import Figures
from tests.sessions.pages import Page


def made(costs: dict[str, int | None], can: Any = AVOIDABLE, **columns: Any) -> Session:
    """A session of now with a cache break of each of these causes, and what each cost."""
    now = int(timezone.now().timestamp() * 1000)
    session = Session.objects.create(
        team=local_team(), external_id=str(uuid4()), ended_at=now,
        **{"step_count": 9, "usage_calls": 9, "cost_microusd": 5_000_000,
           "break_count": len(costs), **columns},
    )  # fmt: skip
    cards = [{"kind": kind, "step": 3, "title": kind, "tokens": 9, "cost_microusd": cost,
              "advice": ""} for kind, cost in costs.items()]  # fmt: skip
    figures = pack(msgspec.json.encode(Figures(causes=cards)))
    Run.objects.create(session=session, origin=Run.Origin.RECORDED, columns=figures)
    for kind, cost in costs.items():
        BreakTotals.objects.create(
            session=session, cause=kind, avoidable=kind in can, breaks=1, tokens=9,
            cost_microusd=cost,
        )  # fmt: skip
    return session


def rows(page: Page) -> list[str]:
    """The texts of what is to do."""
    found = re.search(r'<ol class="fixes">.*?</ol>', page.html, re.S)
    items = re.findall(r"<li>.*?</li>", found[0], re.S) if found else []
    return [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in items]
