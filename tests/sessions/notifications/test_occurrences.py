"""What happens in a team becomes a notification, once, with names and numbers only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.urls import resolve

from compaction.context.session import Usage
from sessions.actions.accounts.audit import COMMAND, GUARDRAIL
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.notifications import channels
from sessions.actions.notifications.events import EVENTS
from sessions.actions.policies import rollouts
from sessions.actions.record.append import append, append_all
from sessions.actions.record.measure import measure
from sessions.actions.reviews.fact_ledgers import keep_ledger
from sessions.importers import records
from sessions.models import FactLedger, Job, Notification, Revision, Session
from tests.sessions.budgets.spending import ask, budget, report
from tests.sessions.budgets.spending import running as live_session
from tests.sessions.made import count, reads, result, says, user
from tests.sessions.made import session as session_of
from tests.sessions.policies.rolling_out import person, running

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]


@pytest.fixture(autouse=True)
def everything_is_notified() -> None:
    to, _ = channels.add_channel(
        local_team(), "slack", "ops", "https://hooks.example.com/x", COMMAND
    )
    for event in EVENTS:
        channels.put_rule(to, event, 0, 0, COMMAND)


def found(event: str) -> list[Notification]:
    """Notifications of an event; each has an address that exists."""
    rows = list(Notification.objects.filter(event=event).order_by("created"))
    for row in rows:
        resolve(row.path)
    return rows


def test_a_call_over_budget_waits_for_approval():
    budget(limit=1_000, mode="approval")
    session = live_session()
    for _ in range(2):
        assert ask(session, "c1", 2_000)["require_approval"]
    (row,) = found("approval")
    assert row.title == "Approval waiting: session run"
    assert (row.facts["call"], row.facts["asked_tokens"]) == ("c1", 2_000)


def test_a_budget_near_and_at_its_limit():
    budget(limit=1_000)
    session = live_session()
    for call, tokens in (("c1", 700), ("c2", 150), ("c3", 20), ("c4", 200)):
        ask(session, call, tokens)
        report(session, call, tokens)
    near, at = found("budget")
    assert near.title == "Budget near its limit: session run, 85 % used"
    assert at.title == "Budget at its limit: session run, 107 % used"


def test_a_threshold_of_100_percent_leaves_out_the_warning():
    to = channels.NotificationChannel.objects.get()
    channels.put_rule(to, "budget", 100, 0, COMMAND)
    budget(limit=1_000)
    session = live_session()
    for call, tokens in (("c1", 850), ("c2", 200)):
        ask(session, call, tokens)
        report(session, call, tokens)
    assert [row.title[:19] for row in found("budget")] == ["Budget at its limit"]


def test_a_guardrail_and_a_rollback():
    rollout = running(10)
    paused = rollouts.pause(rollout, GUARDRAIL, "Needed-later recall: 70 %, at least 90 % allowed")
    rollouts.roll_back(paused, person("owner"), "worse")
    (broken,), (back,) = found("guardrail"), found("rollback")
    assert broken.title == "Guardrail broken: rollout of careful@1 paused"
    assert broken.facts["reason"].startswith("Needed-later recall: 70 %")
    assert back.title == "Rollout of careful@1 rolled back"
    assert back.facts["by"] == "owner" and "reason" not in back.facts


def test_a_person_who_pauses_notifies_no_one():
    rollouts.pause(running(10), person("owner"), "lunch")
    assert found("guardrail") == []


def live_calls(name: str, *reads_of_cache: int, source: str = "api", demo: bool = False) -> Session:
    """A session of calls with 20,000 prompt tokens, so many of them read from the cache."""
    made: list[records.Record] = [user("Begin.", key="k")]
    for number, read in enumerate(reads_of_cache):
        call = f"c{number}"
        made.append(says(call, "The secret plan.", key=call))
        usage = Usage(10, read, 20_000 - read, 0, 50)
        made.append(records.Call(call, "claude-sonnet-4-5", 1_760_000_000_000 + number, usage))
    incoming = session_of(*made, external_id=name)
    (stored,) = append_all(local_team(), [incoming], count, source=source, demo=demo)
    measure(stored.session)
    return stored.session


def test_a_cache_break_of_a_live_session():
    session = live_calls("run", 0, 19_000, 0)
    measure(session)
    (row,) = found("break")
    assert row.title.startswith("Cache break at step 3: ")
    assert row.facts["written_again_tokens"] > 18_000
    assert row.facts["cost_microusd"] > 50_000
    assert "secret" not in json.dumps([row.title, row.facts, row.cause, row.occurrence])


@pytest.mark.parametrize("more", [{"source": "claude-code"}, {"demo": True}])
def test_an_imported_log_and_the_demo_notify_no_one(more: dict[str, Any]):
    live_calls("old", 0, 19_000, 0, **more)
    assert found("break") == []


def test_a_lost_fact_that_was_needed_again():
    made = [
        user("Begin.", key="k"),
        reads("c1", "t1", "ferry/harbor-48123.yaml", key="k1"),
        result("t1", "port = 48123\n" * 3 + "host = 'ferry.example.net'", key="k2"),
        says("c2", "Noted.", key="k3"),
        records.Compaction("auto", key="c"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
        reads("c3", "t2", "ferry/harbor-48123.yaml", key="k4"),
        result("t2", "no such file", key="k5"),
        says("c4", "Hm.", key="k6"),
    ]
    session = append(local_team(), session_of(*made), count, source="api").session
    measure(session)
    revision = Revision.objects.get()
    ledger = keep_ledger(session, revision)
    assert ledger is not None
    keep_ledger(session, revision)
    needed = [one for one in ledger.facts if one["state"] == "lost" and one["needed"]]
    assert needed, "the test loses a fact that is needed"
    (row,) = found("lost")
    assert row.facts["lost_facts_needed"] == len(needed)
    assert "48123" not in row.title + json.dumps(row.facts)
    assert FactLedger.objects.count() == 1


def test_a_job_that_failed():
    job = enqueue(local_team(), "demo", {})
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    jobs.refuse(job.pk, claimed.token, {"title": "No log", "detail": "x", "action": "y"})
    (row,) = found("job")
    assert (row.title, row.facts) == ("Job failed: demo", {"problem": "No log"})


def test_a_job_that_ends_well_or_is_cancelled_notifies_no_one():
    for end in ("finish", "cancel"):
        job = enqueue(local_team(), "demo", {})
        claimed = jobs.claim(job.pk)
        assert claimed is not None and claimed.token is not None
        if end == "finish":
            jobs.finish(job.pk, claimed.token, {})
        else:
            jobs.cancel(Job.objects.get(pk=job.pk))
    assert found("job") == []
