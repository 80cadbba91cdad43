"""Simulations over many sessions: created, run by a real job process, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from compaction.policies.policy import from_dict
from sessions import tasks
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.jobs import jobs
from sessions.actions.lab import simulations
from sessions.actions.lab.simulated_figures import figures_of, recording_of
from sessions.actions.policies.policies import preset_version
from sessions.models import (
    AuditEntry,
    Blob,
    Membership,
    Run,
    Session,
    Simulation,
    SimulationResult,
    Team,
)
from tests.conftest import database_url
from tests.sessions.lab.simulated import DRAFTED, done, log, post, store
from tests.sessions.made import result


@pytest.fixture
def owner(team: Team) -> Client:
    person = get_user_model().objects.create_user("ada")
    Membership.objects.create(user=person, team=team, role="owner")
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person)
    return client


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Job processes see this test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url())
    yield
    tasks.end_idle(0)


def ask(team: Team, preset: str = "sliding-window", **choice: Any) -> Simulation:
    draft = preset_version(team, preset)
    return simulations.ask(team, {"by": "query"} | choice, draft, [], "", COMMAND)


def asked_for(team: Team, owner: Client) -> dict[str, Any]:
    """The answer to a request to try a draft on three sessions."""
    stored = store(team, log("long", 30), log("short", 4), log("unpriced", 12, "some-model"))
    answer = post(
        owner,
        "simulations",
        {
            "sessions": {"by": "hand", "ids": ["long", str(stored[1].pk), "unpriced"]},
            "draft": {"document": DRAFTED, "name": "eager", "based_on": ""},
            "others": ["sliding-window"],
            "note": "as small as it gets",
        },
    )
    assert answer.status_code == 202, answer.content
    asked: dict[str, Any] = answer.json()
    return asked


def done_reply(owner: Client, asked: dict[str, Any]) -> dict[str, Any]:
    tasks.supervise(UUID(asked["job"]))
    reply: dict[str, Any] = owner.get(f"/api/v1/simulations/{asked['simulation']}").json()
    return reply


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_a_draft_is_tried_on_sessions_and_said_who_asked(team, owner, worker):
    asked = asked_for(team, owner)
    entry = AuditEntry.objects.get(action="simulation.asked")
    assert (entry.actor, entry.named, entry.detail["sessions"]) == ("ada", "eager@1", 3)
    reply = done_reply(owner, asked)
    assert reply["url"] == asked["url"]
    assert owner.get(asked["url"]).status_code == 200
    assert (reply["state"], reply["done"], reply["total"], reply["through"]) == ("done", 3, 3, 3)
    job_page = owner.get(reverse("job", args=[asked["job"]])).content.decode()
    assert reverse("simulation", args=[asked["simulation"]]) in job_page
    assert (reply["author"], reply["note"]) == ("ada", "as small as it gets")
    assert [one["ref"] for one in reply["versions"]] == [
        "eager@1", "balanced@1", "sliding-window@1", "recorded",
    ]  # fmt: skip


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_its_sums_are_those_of_its_sessions(team, owner, worker):
    asked = asked_for(team, owner)
    versions = {one["role"]: one for one in done_reply(owner, asked)["versions"]}
    policy = from_dict(Simulation.objects.get(pk=asked["simulation"]).draft.document)
    by_hand = {}
    for one in Session.objects.all():
        by_hand[one.external_id] = figures_of(recording_of(one), policy).figures
    sums = versions["draft"]["sums"]
    for key in ("steps", "tokens_sent", "tokens_sent_recorded", "needs", "revisions"):
        assert sums[key] == sum(figures[key] for figures in by_hand.values()), key
    assert sums["priced"] == 2, "some-model has no known price"
    assert sums["cost_microusd"] == sum(f["cost_microusd"] or 0 for f in by_hand.values())
    recorded = versions["recorded"]["sums"]
    assert recorded["tokens_sent"] == sums["tokens_sent_recorded"] > sums["tokens_sent"]
    assert versions["active"]["against_active"]["tokens"]["median"] == 1


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_its_worst_session_leads_to_a_replay(team, owner, worker):
    simulation = asked_for(team, owner)
    worst = done_reply(owner, simulation)["regressions"][0]
    assert (worst["version"], worst["run_url"]) == ("eager@1", None)
    assert worst["why"]
    wanted = {"policy": worst["version"]}
    beside = reverse("api:simulate", args=[worst["session"]])
    asked = owner.post(beside, wanted, content_type="application/json").json()
    tasks.supervise(UUID(asked["job"]))
    run = Run.objects.get(origin="simulated")
    place = reverse("replay_step", args=[worst["session"], worst["step"]])
    address = f"/api/v1/simulations/{simulation['simulation']}"
    again = owner.get(address).json()["regressions"][0]
    assert again["run_url"].startswith(f"{place}?run={run.pk}")


def test_facts_of_what_is_erased_meanwhile_are_not_stored(team, idle, monkeypatch):
    [stored] = store(team, log("s", 12))
    figures = simulations.figures_of

    def erased_then(*given: Any) -> Any:
        Session.objects.filter(pk=stored.pk).update(erasing=timezone.now())
        return figures(*given)

    monkeypatch.setattr(simulations, "figures_of", erased_then)
    assert done(ask(team).job).state == "done"
    found = SimulationResult.objects.exclude(version=None)
    assert found and all(one.figures["needs"] and one.worst == [] for one in found)


def test_what_is_known_of_the_same_records_is_taken_over(team, idle, monkeypatch):
    [stored] = store(team, log("s", 12))
    first = ask(team)
    assert done(first.job).state == "done"
    monkeypatch.setattr(simulations, "recording_of", lambda _: pytest.fail("it is known"))
    second = ask(team)
    assert done(second.job).state == "done"
    pairs = [
        dict(one.results.values_list("version__policy__name", "figures")) for one in (first, second)
    ]
    assert pairs[0] == pairs[1]
    assert set(pairs[0]) == {None, "sliding-window", "balanced"}

    monkeypatch.undo()
    monkeypatch.setattr(jobs, "wake", lambda *_: None)
    grown = log("s", 12)
    grown.records.append(result("l1", "and more", key="more"))
    store(team, grown)
    third = ask(team)
    done(third.job)
    states = SimulationResult.objects.filter(session=stored).values_list("simulation", "state")
    assert len({state for _, state in states}) == 2, "with more records it is computed again"


def test_a_session_that_cannot_be_simulated_is_listed_and_not_counted(team, owner, idle):
    broken, _ = store(team, log("broken", 6), log("sound", 8))
    sha = broken.blocks.filter(type="tool_result").values_list("sha", flat=True)[3]
    Blob.objects.filter(sha=sha).delete()
    simulation = ask(team)
    job = done(simulation.job)
    reply = owner.get(f"/api/v1/simulations/{simulation.pk}").json()
    assert (job.state, job.result["problems"]) == ("partial", 1)
    [problem] = reply["problems"]
    assert problem["session"] == str(broken.pk)
    assert "missing or damaged" in problem["problem"]
    assert (reply["done"], reply["through"]) == (2, 1)
    assert {one["sums"]["steps"] for one in reply["versions"]} == {9}


def test_what_was_found_before_a_cancellation_stays(team, owner, idle, monkeypatch):
    store(team, log("a", 3), log("b", 4), log("c", 5))
    simulation = ask(team)
    real, seen = simulations.recording_of, []

    def cancel_at_the_second(one: Session) -> Any:
        seen.append(one)
        if len(seen) == 2:
            answer = post(owner, f"simulations/{simulation.pk}/cancel", {})
            assert answer.json()["state"] == "cancelled"
        return real(one)

    monkeypatch.setattr(simulations, "recording_of", cancel_at_the_second)
    monkeypatch.setattr("sessions.actions.jobs.attempts.SECONDS_BETWEEN_REPORTS", 0)
    assert done(simulation.job).state == "cancelled"
    reply = owner.get(f"/api/v1/simulations/{simulation.pk}").json()
    assert (reply["state"], reply["done"], reply["total"]) == ("cancelled", 1, 3)
    assert reply["versions"][0]["sums"]["steps"] == seen[0].step_count


def test_the_smallest_sessions_come_first_and_the_rest_as_chosen(team, idle, monkeypatch):
    monkeypatch.setattr(simulations, "SMALL_FIRST", 1)
    stored = store(team, log("b", 6), log("a", 3), log("c", 5))
    chosen = ask(team, by="hand", ids=["b", "c", "a"])
    names = {str(one.pk): one.external_id for one in stored}
    assert [names[pk] for pk in chosen.sessions] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "pointer", "says"),
    [
        ({"sessions": {"by": "hand", "ids": []}}, "/sessions/ids", "No session selected"),
        ({"sessions": {"by": "hand", "ids": ["no"]}}, "/sessions/ids/0", "no such session"),
        ({"sessions": {"by": "hand", "ids": ["s"] + [str(n) for n in range(500)]}},
         "/sessions/ids", "at most 500"),
        ({"sessions": {"by": "query", "q": "zebra"}}, "/sessions/by", "Widen"),
        ({"sessions": {"by": "query", "flags": ["odd"]}}, "/sessions/flags", "compacted"),
        ({"sessions": {"by": "sample", "n": 501}}, "/sessions/n", ""),
        ({"sessions": {"by": "moon"}}, "/sessions/by", ""),
        ({"draft": "missing"}, "/draft", "not a policy of this team"),
        ({"others": ["offload-first@9"]}, "/others/0", "not a version of offload-first"),
        ({"draft": {"document": {"steps": [{"strategy": "x"}]}, "name": "n"}},
         "/draft/document/steps/0/strategy", "must be one of"),
        ({"draft": {"document": DRAFTED, "name": "offload-first"}}, "/draft/document/name", ""),
        ({"draft": {"name": "n"}}, "/draft", "a document"),
    ],
)  # fmt: skip
def test_what_cannot_be_simulated_is_refused_beside_its_field(
    team, owner, idle, body, pointer, says
):
    store(team, log("s", 3))
    answer = post(owner, "simulations", {"sessions": {"by": "query"}, "draft": "recitation"} | body)
    assert answer.status_code == 422, answer.content
    fault = answer.json()["errors"][0]
    assert fault["pointer"] == pointer
    assert says in fault["detail"]
    assert not Simulation.objects.exists()


def test_a_list_of_simulations_has_pages(team, owner, idle):
    store(team, log("s", 3))
    made = [str(ask(team).pk) for _ in range(3)]
    first = owner.get("/api/v1/simulations?limit=2").json()
    assert [one["id"] for one in first["simulations"]] == made[:0:-1]
    rest = owner.get(f"/api/v1/simulations?limit=2&after={first['next']}").json()
    assert ([one["id"] for one in rest["simulations"]], rest["next"]) == (made[:1], None)
