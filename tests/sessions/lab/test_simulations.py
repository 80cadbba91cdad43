"""Simulations over many sessions: created, run by a real job process, and their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from compaction import tokens
from compaction.policies.policy import from_dict, to_dict
from compaction.policies.presets import PRESETS
from sessions import tasks
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import attempt
from sessions.actions.lab import simulations
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.lab.simulated_figures import figures_of, recorded_figures, recording_of
from sessions.actions.lab.unstored import recording_of_log
from sessions.actions.policies.policies import preset_version, save_version
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import (
    AuditEntry,
    Blob,
    Job,
    Membership,
    Run,
    Session,
    Simulation,
    SimulationResult,
    Team,
)
from tests.conftest import database_url
from tests.sessions.made import reads, result, session, user

DRAFTED = {"steps": [{"strategy": "offload", "parameters": {"age": 1, "batch": 1}}]}


def log(name: str, steps: int, model: str = "claude-sonnet-4-5") -> records.Session:
    """A session that reads files of some size, and needs facts from the first ones at its end."""
    made: list[records.Record] = [user("Find the port in the settings.", key="k", at=0)]
    for step in range(1, steps + 1):
        made.append(reads(f"c{step}", f"t{step}", f"src/part_{step}.py", key=f"a{step}"))
        lines = (f"def handler_{step}_{line}(): return {line}\n" for line in range(40))
        body = f"# {name}\n" + "".join(lines)
        made.append(result(f"t{step}", body, key=f"b{step}"))
        made.append(records.Call(f"c{step}", model=model, at=step * 20_000))
    for part in range(1, 13):
        made.append(reads("last", f"l{part}", f"handler_{part}_7", key=f"z{part}"))
    found = session(*made, external_id=name)
    found.model = model
    return found


def store(team: Team, *logs: records.Session) -> list[Session]:
    stored = [append(team, one, tokens.counted, source="test").session for one in logs]
    for one in stored:
        measure(one)
    return stored


@pytest.fixture
def team(db: None) -> Team:
    return local_team()


@pytest.fixture
def owner(team: Team) -> Client:
    person = get_user_model().objects.create_user("ada")
    Membership.objects.create(user=person, team=team, role="owner")
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(person)
    return client


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are asked for, and wait."""
    monkeypatch.setattr(jobs, "wake", lambda _: None)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Job processes see this test's database."""
    monkeypatch.setenv("DATABASE_URL", database_url())
    yield
    tasks.end_idle(0)


def post(client: Client, address: str, body: Any) -> Any:
    return client.post(f"/api/v1/{address}", json.dumps(body), "application/json")


def done(job: Job) -> Job:
    """The job after an attempt in this process."""
    claimed = jobs.claim(job.pk)
    assert claimed is not None and claimed.token is not None
    attempt(claimed.pk, claimed.token)
    job.refresh_from_db()
    return job


def ask(team: Team, preset: str = "sliding-window", **choice: Any) -> Simulation:
    draft = preset_version(team, preset)
    return simulations.ask(team, {"by": "query"} | choice, draft, [], "", COMMAND)


@pytest.mark.store
@pytest.mark.django_db(transaction=True)
def test_a_draft_is_tried_on_sessions_from_asking_to_the_replay(team, owner, worker):
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
    asked = answer.json()
    entry = AuditEntry.objects.get(action="simulation.asked")
    assert (entry.actor, entry.named, entry.detail["sessions"]) == ("ada", "eager@1", 3)

    tasks.run_job(asked["job"])
    address = f"/api/v1/simulations/{asked['simulation']}"
    reply = owner.get(address).json()
    assert reply["url"] == asked["url"]
    assert owner.get(asked["url"]).status_code == 200
    assert (reply["state"], reply["done"], reply["total"], reply["through"]) == ("done", 3, 3, 3)
    job_page = owner.get(reverse("job", args=[asked["job"]])).content.decode()
    assert reverse("simulation", args=[asked["simulation"]]) in job_page
    assert (reply["author"], reply["note"]) == ("ada", "as small as it gets")
    versions = {one["role"]: one for one in reply["versions"]}
    assert [one["ref"] for one in reply["versions"]] == [
        "eager@1", "balanced@1", "sliding-window@1", "recorded",
    ]  # fmt: skip

    policy = from_dict(Simulation.objects.get(pk=asked["simulation"]).draft.document)
    by_hand = {}
    for one in Session.objects.all():
        by_hand[one.external_id] = figures_of(recording_of(one), policy).figures
    sums = versions["draft"]["sums"]
    for key in ("steps", "tokens_sent", "tokens_sent_recorded", "needs", "revisions"):
        assert sums[key] == sum(figures[key] for figures in by_hand.values()), key
    assert sums["priced"] == 2, "nobody knows a price of some-model"
    assert sums["cost_microusd"] == sum(f["cost_microusd"] or 0 for f in by_hand.values())
    recorded = versions["recorded"]["sums"]
    assert recorded["tokens_sent"] == sums["tokens_sent_recorded"] > sums["tokens_sent"]
    assert versions["active"]["against_active"]["tokens"]["median"] == 1

    worst = reply["regressions"][0]
    assert (worst["version"], worst["run_url"]) == ("eager@1", None)
    assert worst["why"]
    wanted = {"policy": worst["version"]}
    beside = reverse("api:simulate", args=[worst["session"]])
    asked = owner.post(beside, wanted, content_type="application/json").json()
    tasks.run_job(asked["job"])
    run = Run.objects.get(origin="simulated")
    place = reverse("replay_step", args=[worst["session"], worst["step"]])
    again = owner.get(address).json()["regressions"][0]
    assert again["run_url"].startswith(f"{place}?run={run.pk}")


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
    monkeypatch.setattr(jobs, "wake", lambda _: None)
    grown = log("s", 12)
    grown.records.append(result("l1", "and more", key="more"))
    store(team, grown)
    third = ask(team)
    done(third.job)
    states = SimulationResult.objects.filter(session=stored).values_list("simulation", "state")
    assert len({state for _, state in states}) == 2, "with more records it is computed anew"


def test_a_session_that_cannot_be_simulated_is_told_and_counts_nowhere(team, owner, idle):
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
        ({"draft": "nobody"}, "/draft", "not a policy of this team"),
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


def test_the_curves_of_a_session_are_those_of_its_records(team, owner):
    compacted = log("compacted", 8)
    compacted.records[12:12] = [
        records.Compaction("auto", key="cut"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
    ]
    [stored] = store(team, compacted)
    reply = owner.get("/api/v1/simulations/curves?by=hand&ids=compacted").json()
    [sizes] = reply["sessions"]
    recording = recording_of(stored)
    assert sizes["recorded"] == [s.total + stored.hidden_tokens for s in recording.lived.steps]
    whole = 0
    for step in range(stored.step_count):
        whole += sizes["other"][step] + sum(sizes["tools"][step])
        born = sum(b.tokens for b in recording.value.blocks if b.born <= step + 1)
        assert whole == born
    price = recording.terms.price
    assert sizes["price"]["output"] == price.output
    assert sizes["price"]["write_1h"] == price.cache_write_1h
    assert (sizes["rules"], sizes["ttl"]) == ("anthropic", "5m")
    assert {len(sizes[name]) for name in ("at", "other", "users", "tools", "output")} == {
        stored.step_count
    }
    assert owner.get("/api/v1/simulations/curves?q=zebra").json()["sessions"] == []


def command(*arguments: str) -> Any:
    out = StringIO()
    call_command("simulate", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_the_command_gives_the_figures_of_the_lab(team, idle, tmp_path):
    stored = store(team, log("x", 9), log("y", 14))
    draft = save_version(team, "eager", DRAFTED, "", "", None, COMMAND)
    simulation = simulations.ask(team, {"by": "query"}, draft, [], "", COMMAND)
    done(simulation.job)
    file = tmp_path / "eager.yaml"
    file.write_text("steps: [{strategy: offload, parameters: {age: 1, batch: 1}}]")
    for policy in ("eager", "eager@1", str(file)):
        reply = command("x", str(stored[1].pk), "--policy", policy)
        assert (reply["policy"]["name"], reply["sessions"]) == ("eager", 2)
        for row in reply["per_session"]:
            in_lab = simulation.results.get(session__external_id=row["id"], version=draft).figures
            for name in row.keys() - {"id", "ms_per_step"}:
                assert row[name] == in_lab[name], name
        assert reply["tokens_sent"] == sum(row["tokens_sent"] for row in reply["per_session"])


@pytest.mark.parametrize(
    ("policy", "objective", "taken"),
    [
        ("balanced", "cheap", "balanced"),
        ("balanced", "lean", "balanced-lean"),
        ("balanced-lean", "cheap", "balanced"),
        ("balanced-lean", "lean", "balanced-lean"),
    ],
)
def test_an_objective_takes_the_preset_that_has_numbers_for_it(team, policy, objective, taken):
    store(team, log("x", 3))
    reply = command("x", "--policy", policy, "--objective", objective)
    assert reply["asked"] == {"policy": policy, "objective": objective, "heeded": True}
    ran = reply["policy"]
    assert (ran["name"], ran["objective"]) == (taken, objective)
    assert ran["steps"] == to_dict(PRESETS[taken])["steps"]


def test_the_text_names_the_strategies_that_acted(team):
    store(team, log("x", 30))
    for policy, said in (("offload-first", " by offload"), ("passthrough", "No strategy acted.")):
        out = StringIO()
        call_command("simulate", "x", "--policy", policy, stdout=out)
        assert said in out.getvalue()


def test_an_objective_that_no_step_asks_for_is_said(team):
    store(team, log("x", 3))
    out, err = StringIO(), StringIO()
    given = ("x", "--policy", "offload-first", "--objective", "lean", "--json")
    call_command("simulate", *given, stdout=out, stderr=err)
    reply = json.loads(out.getvalue())
    assert reply["asked"] == {"policy": "offload-first", "objective": "lean", "heeded": False}
    assert reply["policy"] == to_dict(PRESETS["offload-first"])
    said = "--objective lean has no effect: no step of offload-first uses it.\n"
    assert err.getvalue() == said


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (
            "eager@7",
            "'eager@7' is not a file, and is not a version of eager; there is only eager@1.",
        ),
        ("again@7", "is not a version of again; there are again@1 to again@2."),
        ("balanced@7", "is not a version of balanced; there is only balanced@1."),
        ("nobody@1", "is not a policy of this team; presets are always available: balanced"),
    ],
)
def test_a_version_that_is_not_there_names_those_that_are(team, policy, sentence):
    save_version(team, "eager", DRAFTED, "", "", None, COMMAND)
    for age in (1, 2):
        step = {"strategy": "offload", "parameters": {"age": age, "batch": 1}}
        save_version(team, "again", {"steps": [step]}, "", "", None, COMMAND)
    store(team, log("x", 3))
    with pytest.raises(CommandError) as problem:
        command("x", "--policy", policy)
    assert sentence in str(problem.value)
    assert problem.value.returncode == 2


def test_a_log_that_is_not_stored_gives_what_it_gives_when_stored(team):
    made = log("log", 20)
    made.records[30:30] = [
        records.Clear(("t2", "t3"), key="clear"),
        user("And now?", key="aside"),
        records.Rewind(("aside",), key="back"),
    ]
    made.records[45:45] = [
        records.Compaction("auto", keep=("b12",), key="cut"),
        records.Message("user", [{"type": "text", "text": "So far."}], key="s", kind="summary"),
    ]
    made.records.append(records.Call("late", model="claude-sonnet-4-5", usage=None))
    usage = records.Usage(uncached=9_000, output=40)
    made.records += [records.Call(f"c{step}", usage=usage) for step in (1, 5, 18)]
    unstored = recording_of_log(made)
    [stored] = store(team, made)
    recording = recording_of(stored)
    assert unstored is not None
    assert unstored.value.calls == recording.value.calls
    assert unstored.value.blocks == recording.value.blocks
    assert (unstored.permille, unstored.value.hidden) == (stored.token_ratio, stored.hidden_tokens)
    assert unstored.lived.steps == recording.lived.steps
    assert recorded_figures(unstored) == recorded_figures(recording)


def test_a_stored_run_carries_the_same_figures(team):
    [stored] = store(team, log("s", 10))
    run = simulate_session(stored, "offload-first")
    own = figures_of(recording_of(stored), PRESETS["offload-first"])
    for name in own.figures.keys() - {"ms_per_step"}:
        assert run.figures[name] == own.figures[name]
