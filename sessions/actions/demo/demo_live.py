"""Live part of the demo: one agent shares a finding with another, which waits for an approval.

Everything goes through the same code as for real agents; only their messages are scripted.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from sessions import demo
from sessions.actions.accounts import audit
from sessions.actions.budgets import spending
from sessions.actions.budgets.budgets import BudgetFields, budgets_of, put_budget
from sessions.actions.live import tend
from sessions.actions.live.answer import note_use
from sessions.actions.live.handing_out import next_call
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.memory import boards, shares
from sessions.actions.record.append import LIVE, append
from sessions.actions.record.measure import measure
from sessions.actions.record.prepare import Count
from sessions.actions.tools.graphs import set_graph
from sessions.importers import records
from sessions.models import Board, Budget, Session, Team
from sessions.models.record.demo_data import has_real
from sessions.models.record.values import blocks_of

DONE, RUNNING = "demo:gateway", "demo:notices"
TASKS = {DONE: "demo: limits of text messages", RUNNING: "demo: late ships, both languages"}
SAID: dict[str, dict[str, Any]] = {
    DONE: {"policy": "sliding-window"},
    RUNNING: {"policy": "offload-first", "policy_overrides": {"offload.age": 8}},
}
"""Session fields of each, besides name and task."""

TOOLS: dict[str, Any] = {
    "tools": [
        *({"name": name} for name in ("Read", "Grep", "TodoWrite")),
        {"name": "Write", "needs": ["Read"]},
        {"name": "Edit", "needs": ["Read"]},
        {"name": "Bash", "needs": ["Edit"]},
    ],
    "states": {"looking": ["Read", "Grep", "TodoWrite", "Write"], "changing": ["*"]},
    "after": {"Write": "changing"},
}
"""Requires reading before editing, and editing before running."""

EXPECTED = 500
"""Output tokens that the running agent expects."""

BUDGETS = (
    BudgetFields("task", TASKS[RUNNING], tokens=38_000, mode="approval"),
    BudgetFields("agent", "demo-writer", period="day", microusd=100_000, mode="soft"),
)
NAMES = {one.name for one in BUDGETS}


def begin_live(team: Team, now_ms: int, count: Count) -> list[Session]:
    """Start both agents, unless they already exist. Background jobs for live sessions are queued as
    usual."""
    if Session.objects.for_team(team).filter(external_id__in=TASKS).exists():
        return []
    played = {one.external_id: one for one in demo.play_live(now_ms, count)}
    with transaction.atomic():
        running = _named(team, played[RUNNING])
        set_graph(running, TOOLS)
        for fields in BUDGETS:
            put_budget(team, fields, audit.DEMO)
        done = _named(team, played[DONE])
        shares.subscribe(running, "agent", played[DONE].agent, audit.DEMO)
    for session in (done, running):
        append(team, played[session.external_id], count, source=LIVE)
        measure(session)
    put_session(team, DONE, session_fields({"outcome": "succeeded"}))
    # As an agent's own appends note it.
    note_use(running, None, sum(one.tokens for one in blocks_of(running, with_text=False)))
    running.save(update_fields=["used_tokens", "counted_tokens", "peak_tokens"])
    tend.ask(running)
    wanted = spending.PlannedCall(f"{running.step_count + 1}", running.peak_tokens + EXPECTED)
    next_call.check(running, wanted, timezone.now())
    return [done, running]


def _named(team: Team, played: records.Session) -> Session:
    """Create the session before its first message."""
    said = {"agent": played.agent, "model": played.model, "title": played.title}
    about = {"task": TASKS[played.external_id], "window": played.window, "metadata": played.meta}
    fields = session_fields(said | about | SAID[played.external_id])
    session, _ = put_session(team, played.external_id, fields)
    session.demo = True
    session.save(update_fields=["demo"])
    return session


def shown_budgets(team: Team) -> list[Budget]:
    """Budgets of a team: the demo's only while it is alone."""
    found = budgets_of(team)
    return [one for one in found if one.name not in NAMES] if has_real(team.pk) else found


def end_live(team: Team) -> None:
    """Delete budgets and boards of the demo sessions, and what projects learned from them."""
    Budget.objects.filter(team=team, name__in=NAMES).delete()
    Board.objects.filter(team=team, kind=Board.Kind.TASK, name__in=TASKS.values()).delete()
    boards.forget(team, Session.objects.for_team(team).filter(demo=True))
