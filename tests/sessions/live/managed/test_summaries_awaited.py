"""Summaries that a policy waits for: named, asked for, and waited for."""

from __future__ import annotations

import pytest

from compaction.summaries.extract import extractive
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.live import artefacts, folds, managed
from sessions.actions.live.managed import (
    catch_up,
)
from tests.sessions.live.managed.test_managed import grown, no_folds, send, talk

__all__ = ["no_folds"]

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_summary_that_is_not_ready_is_named_and_asked_for(monkeypatch: pytest.MonkeyPatch):
    ready: list[str] = []
    monkeypatch.setattr(
        artefacts, "summary_now", lambda session, span: ready and extractive(span) or None
    )
    missing: list[tuple[str, ...]] = []
    for batch in talk(24):
        stored = send(*batch)
        missing.append(catch_up(stored).missing)
    assert missing[-1] == ("summary",)
    assert () in missing
    assert stored.team.jobs.filter(kind="tend").count() == 1
    folds.forget_all()
    assert catch_up(stored).missing == ("summary",)
    ready.append("now")
    plan = catch_up(stored)
    assert plan.missing == ()
    assert any(block.kind == "summary" for block in plan.blocks)


@pytest.mark.parametrize(("wait", "full"), [(20, 1.0), (0, 0.01)])
def test_a_caller_may_wait_for_a_summary_and_must_if_the_window_is_full(
    monkeypatch: pytest.MonkeyPatch, wait: int, full: float
):
    monkeypatch.setattr(artefacts, "summary_now", artefacts.summary_text)
    stored = grown(24)
    monkeypatch.setattr(managed, "FULL", full)
    waited: list[float] = []

    def work(seconds: float) -> None:
        """Run the worker's part while the caller waits."""
        waited.append(seconds)
        job = jobs.claim(stored.team.jobs.get(kind="tend").pk)
        assert job is not None and job.token is not None
        attempt(job.pk, job.token)

    monkeypatch.setattr(managed.time, "sleep", work)
    plan = catch_up(stored, wait=wait)
    assert (plan.missing, len(waited)) == ((), 1)
