"""Reported usage of the recorded baseline, beside what a simulation gives for it."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Session
from sessions.models.lab.measured import measured_usage
from tests.sessions.made import count, reads, result, session, user

pytestmark = pytest.mark.django_db


def stored(name: str, *usages: Usage | None) -> Session:
    made: list[records.Record] = [user(f"Read {name}.")]
    for step, usage in enumerate(usages):
        made += [
            reads(f"{name}{step}", f"t{step}", "a.py"),
            records.Call(f"{name}{step}", "claude-sonnet-4-5", usage=usage),
            result(f"t{step}", "def load_all()"),
        ]
    del made[-1]  # what follows the last call would begin a step without usage
    found = append(local_team(), session(*made, external_id=name), count, source=name).session
    measure(found)
    found.refresh_from_db()
    return found


def test_measured_tokens_are_those_of_the_log_and_a_bound_where_calls_reported_none() -> None:
    whole = stored(
        "a", Usage(uncached=100, cache_read=700, output=90), Usage(uncached=200, output=9)
    )
    silent = stored("b", None)
    found = measured_usage([whole.pk], [])
    assert found is not None
    assert (found["tokens"], found["cache_read_share"], found["sessions"]) == (1_000, 0.7, 1)
    assert (found["tokens_at_least"], found["cost_measured"]) == (False, True)
    guessed: list[dict[str, Any]] = [{"cost_reported": False, "cost_microusd": 5}]
    both = measured_usage([whole.pk, silent.pk], guessed)
    assert both is not None
    assert (both["tokens"], both["sessions"]) == (1_000, 1), "one reported nothing"
    assert both["tokens_at_least"] and both["cost_at_least"] and not both["cost_measured"]
    assert measured_usage([silent.pk], []) is None
