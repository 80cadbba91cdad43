"""The test world for all routes: one object of every kind in a team.

A new path parameter needs an entry in `one_of_everything`, and a value in `MISSING` that does not
exist, unless it is a UUID.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from compaction.policies.policy import to_dict
from compaction.policies.presets import PRESETS
from compaction.redaction.team_rules import TeamRule
from sessions.actions.accounts import audit
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.invitations import invite
from sessions.actions.budgets import budgets, spending
from sessions.actions.erasure import holds, receipts, requests
from sessions.actions.erasure.requests import ErasureRule
from sessions.actions.imports.imports import begin_import
from sessions.actions.ingestion import arrivals
from sessions.actions.jobs import jobs
from sessions.actions.lab import simulations, tunings
from sessions.actions.live.handing_out import next_call
from sessions.actions.live.live_sessions import put_session, session_fields
from sessions.actions.live.requests import pins
from sessions.actions.masking import rules
from sessions.actions.memory import boards, shares
from sessions.actions.notifications import channels
from sessions.actions.policies import bounds, rollouts
from sessions.actions.policies.policies import preset_version, save_version
from sessions.actions.replay.step_notes import add_note
from sessions.models import (
    Approval,
    Erasure,
    Hold,
    ImportFile,
    Job,
    Membership,
    Notification,
    RefusedRequest,
    ReviewItem,
    Revision,
    SavedSearch,
    Session,
    SkippedRecord,
    TuningTrial,
)
from tests.sessions.web.addresses import BODIES, Address

if TYPE_CHECKING:
    from tests.sessions.programs import Program

MISSING = {
    "name": "no-such-policy",
    "sha": "f" * 64,
    "prefix": "zzzzzzzz",
    "record_id": 10**6,
    "slug": "no-such-team",
}
MISSING |= {"member_id": 10**6, "invitation_id": 10**6}
MISSING |= dict.fromkeys(("note_id", "board_id", "subscription_id", "search_id"), 10**6)


def each(asked: list[Address]) -> Iterator[Address]:
    """Each route in turn, with the world restored before each."""
    assert asked
    for address in asked:
        with transaction.atomic():
            yield address
            transaction.set_rollback(True)


def reading(call: str) -> list[dict[str, Any]]:
    """Messages of a step that reads a long file."""
    use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": f"{call}.py"}}
    text = "\n".join(f"line {number} of {call}" for number in range(300))
    result = {"type": "tool_result", "tool_use_id": call, "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def one_of_everything(program: Program) -> dict[str, Any]:
    """One object of every kind in a team, by path parameter."""
    about = {"model": "claude-sonnet-4-5", "window": 40_000, "policy": "offload-first"}
    program.ask("PUT", "/sessions/run", about)
    program.post("/sessions/run/messages", BODIES["messages"])
    for call in ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]:
        program.get("/sessions/run/context")
        program.post("/sessions/run/messages", {"messages": reading(call)})
    assert program.get("/sessions/run/context")["revision"], "there is one to take back"
    session = Session.objects.get(team=program.team)
    pins.pin(session, 1)
    job = Job.objects.filter(team=program.team).first() or jobs.enqueue(program.team, "demo", {})
    sha = program.get("/sessions/run/messages")["messages"][0]["blocks"][0]["sha"]
    person = get_user_model().objects.create_user(f"a member of {program.team}")
    member = Membership.objects.create(user=person, team=program.team)
    invitation, _ = invite(program.team, "viewer", COMMAND)
    revision = Revision.objects.get(run__session=session, run__origin="managed", number=1)
    note, _ = boards.put_note(session, "knowledge", "the port is 80")
    subscription = shares.subscribe(session, "agent", "other", COMMAND)
    asking = budgets.BudgetFields("session", tokens=10, mode="approval")
    budget, _ = budgets.put_budget(program.team, asking, COMMAND)
    next_call.check(session, spending.PlannedCall("c1", 20), timezone.now())
    approval = Approval.objects.get()
    budgets.put_budget(program.team, replace(asking, active=False), COMMAND)
    item = ReviewItem.objects.create(team=program.team, revision=revision, reason="hand")
    simulation = simulations.ask(
        program.team, {"by": "query"}, preset_version(program.team, "passthrough"), [], "", COMMAND
    )
    tuning = tunings.ask(
        preset_version(program.team, "passthrough"), {"by": "query"}, "cheap", 1, COMMAND
    )
    TuningTrial.objects.create(tuning=tuning, number=1, document=to_dict(PRESETS["recitation"]),
                               figures={"tokens_sent": 1, "tokens_sent_recorded": 2,
                                        "named": None, "cache_read_share": None})  # fmt: skip
    saved = SavedSearch.objects.create(team=program.team, name="ports", query="q=port")
    version = save_version(program.team, "our-policy", {}, "sliding-window", "", None, COMMAND)
    rollout = rollouts.propose(version, "", bounds.defaults(), COMMAND)
    return {
        **imported(program, job), **notifying(program), **erasing(program),
        "rollout_id": rollout.pk, "name": "our-policy",
        "item_id": item.pk, "simulation_id": simulation.pk, "tuning_id": tuning.pk,
        "note_id": note.pk, "board_id": note.board_id, "subscription_id": subscription.pk,
        "search_id": saved.pk, "step_note_id": add_note(session, 1, "guessed", COMMAND).pk,
        "budget_id": budget.pk, "approval_id": approval.pk,
        "member_id": member.pk, "invitation_id": invitation.pk, "slug": program.team.slug,
        "other_id": session.pk,
        "session_id": session.pk, "job_id": job.pk,
        "sha": sha, "ref": "1", "file": f"m1.0@{sha[:8]}.txt", "seq": 1, "number": 1, "step": 1,
        "a": 1, "b": 1, "run": "managed", "token": "x", "prefix": program.key.prefix, "rest": "x",
        "uidb36": "1", "key": "x-y",
    }  # fmt: skip


def imported(program: Program, job: Job) -> dict[str, Any]:
    """An import with a record that was skipped, and a refused request."""
    made = begin_import(program.team, [("a", "/nowhere/a", 1)], job=job)
    file = ImportFile.objects.get(import_run=made)
    skipped = SkippedRecord.objects.create(file=file, type="x", reason="unknown", count=1)
    arrivals.flush()  # what other tests left may be as much as may wait
    program.ask("POST", "/sessions/run/messages", {"messages": [{"role": "robot", "content": ""}]})
    arrivals.flush()
    refused = RefusedRequest.objects.get(team=program.team)
    return {"import_id": made.pk, "record_id": skipped.pk, "refused_id": refused.pk}


def notifying(program: Program) -> dict[str, Any]:
    """A channel with a rule and a notification that failed."""
    channel, _ = channels.add_channel(program.team, "email", "a", "a@example.org", COMMAND)
    rule, _ = channels.put_rule(channel, "job", None, 60, COMMAND)
    notification = channels.send_test(channel, COMMAND)
    Notification.objects.update(state="failed")
    return {"channel_id": channel.pk, "rule_id": rule.pk, "notification_id": notification.pk}


def erasing(program: Program) -> dict[str, Any]:
    """A finished erasure, a hold that is in the way of none, and a masking rule."""
    actor = audit.COMMAND
    gone, _ = put_session(program.team, "gone", session_fields({}))
    rule = ErasureRule(Erasure.Kind.SESSION, "gone")
    made = requests.begin(program.team, rule, [gone.pk], actor)
    Session.objects.filter(pk=gone.pk).delete()
    Erasure.objects.filter(pk=made.pk).update(
        receipt=receipts.canonical(receipts.make(made, [], 0, timezone.now())),
        finished=timezone.now(),
    )
    hold = holds.hold(program.team, Hold.Kind.TASK, "another", actor, "a lawsuit")
    mask = rules.add(program.team, TeamRule("CUSTOMER", "words", "Mara", "[CUSTOMER]"), actor)
    return {"erasure_id": made.pk, "hold_id": hold.pk, "masking_rule_id": mask.pk}


def missing_like(world: dict[str, Any]) -> dict[str, Any]:
    """Names of objects that do not exist."""
    return {
        name: uuid4() if isinstance(value, UUID) else MISSING.get(name, value)
        for name, value in world.items()
    }


def browser_of(team: Any, role: str = "owner") -> Client:
    """The browser of a new person of that role."""
    person = get_user_model().objects.create_user(f"{role} of {team}")
    Membership.objects.create(user=person, team=team, role=role)
    client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
    client.force_login(person)
    return client


def by_browser(client: Client, address: Address, ids: dict[str, Any]) -> HttpResponse:
    """As a page would ask; who is signed in stays so."""
    body, cookies = json.dumps(address.body), deepcopy(client.cookies)
    answer = client.generic(address.method, address.at(ids), body, "application/json")
    client.cookies = cookies  # signing out would end the walk
    return answer


def by_program(one: Program, address: Address, ids: dict[str, Any], **headers: str) -> HttpResponse:
    """As a program would ask."""
    return one.ask(
        address.method, address.at(ids).removeprefix("/api/v1"),
        None if address.method == "GET" else address.body, **headers,
    )  # fmt: skip
