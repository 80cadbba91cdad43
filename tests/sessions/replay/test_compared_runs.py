"""Two runs of one session compared: page, API and command say the same."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from compaction.policies.policy import Policy, Step, to_dict
from compaction.strategies.offload import Offload
from sessions.actions.accounts.teams import local_team
from sessions.actions.lab.simulate import simulate_session
from sessions.actions.live.managed import catch_up, record_context
from sessions.actions.policies.policies import version_of
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.replay.run_comparisons import compare_runs
from sessions.importers import records
from sessions.models import Run, Session
from tests.sessions.live import appends
from tests.sessions.live.test_steps import STEPS, USAGE, said, turn
from tests.sessions.made import count, reads, result, session, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program

pytestmark = pytest.mark.django_db

OFTEN = Policy("often", steps=(Step("offload", Offload(age=2, batch=2)),))


@pytest.fixture
def simulated() -> Run:
    """A simulation of a session that needs each file 20 steps later."""
    made: list[records.Record] = [user("Read the files.", key="u")]
    for step in range(1, 41):
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=f"a{step}"))
        text = f"See src/f{step + 20}.py\n" * 2_000  # what is needed 20 steps later
        made.append(result(f"t{step}", text, key=f"r{step}"))
    stored = append(local_team(), session(*made), count, source="test").session
    measure(stored)
    stored.refresh_from_db()
    return simulate_session(stored, "offload-first")


def test_the_page_shows_two_runs_step_by_step(simulated: Run) -> None:
    run, stored = simulated, simulated.session
    found = compare_runs(Run.objects.get(session=stored, origin=Run.Origin.RECORDED), run)
    first = run.revisions.order_by("number").values_list("step", flat=True)[0]
    assert found.parting == first - 1
    assert {row.op for row in found.rows[: first - 1]} == {"same"}
    assert found.rows[first - 1].op == "changed"
    client = signed_in()
    page = page_of(client, f"/compare/{stored.pk}..{stored.pk}/?run=recorded&with_run={run.pk}")
    assert f"they part at step {first}" in page.text and "Compare runs" in page.text
    (here,) = (url for name, url in page.links.items() if name == f"B {first}")
    assert f"run={run.pk}" in here
    rows = f"/compare/{stored.pk}..{stored.pk}/rows/?run=recorded&with_run={run.pk}"
    assert "aligned-row same" in client.get(f"{rows}&since=0&until=2").content.decode()
    assert f"{first - 1} steps with the same context: 1–{first - 1}" in page.text
    assert "other context" in page.text and "changed" not in page.text
    assert client.get(f"/compare/{stored.pk}..{stored.pk}/?with_run=none").status_code == 404
    # No text left what was recorded, so it had all that the simulation needed.
    recall = found.figure("recall")
    assert recall.a == 1.0 and recall.b == run.figures["in_context"] and run.figures["needs"]


def test_api_and_command_compare_two_runs(simulated: Run) -> None:
    run, stored, client = simulated, simulated.session, signed_in()
    first = run.revisions.order_by("number").values_list("step", flat=True)[0]
    asked = f"/api/v1/sessions/{stored.external_id}/compare?with_run={run.pk}"
    answer = client.get(asked).json()
    assert answer["b"]["run"] == {
        "id": str(run.pk), "origin": "simulated", "policy": str(run.policy_version)
    }  # fmt: skip
    assert answer["a"]["run"]["origin"] == "recorded" and answer["parting"]["a"] == first
    assert client.get(f"{asked}&with={stored.external_id}").json() == answer
    assert client.get(f"/api/v1/sessions/{stored.pk}/compare?run=none").status_code == 404
    out = StringIO()
    named = {"with_run": "offload-first", "json": True, "stdout": out}
    call_command("compare", stored.external_id, **named)
    assert [one["op"] for one in json.loads(out.getvalue())["rows"]][:100] == [
        one["op"] for one in answer["rows"]
    ]
    out = StringIO()
    call_command("compare", stored.external_id, run="offload-first", stdout=out)
    assert f"A: {run.policy_version}\nB: recorded\n" in out.getvalue()
    with pytest.raises(CommandError, match="Available runs: recorded, "):
        call_command("compare", stored.external_id, with_run="none")
    with pytest.raises(CommandError, match="Name two sessions"):
        call_command("compare", stored.external_id)


def test_what_an_agent_was_given_is_compared_with_what_it_reported() -> None:
    version_of(local_team(), "often", to_dict(OFTEN), preset=False)
    found = appends.live("run", policy="often")
    appends.send(found, appends.user("Find the port in the settings."))
    for step in range(1, 13):
        appends.send(found, appends.reads(f"t{step}", f"src/f{step}.py"))
        text = f"See src/f{step + 6}.py\n" * 400  # what is needed six steps later
        appends.send(found, appends.result(f"t{step}", text))
        record_context(catch_up(found), "anthropic")
    measure(found)
    found.refresh_from_db()
    answer = signed_in().get("/api/v1/sessions/run/compare?with_run=managed").json()
    assert answer["b"]["run"]["policy"] == "often@1" and answer["a"]["run"]["policy"] is None
    run = found.runs.get(origin="managed")
    first = run.revisions.order_by("number").values_list("step", flat=True)[0]
    assert answer["parting"]["a"] == answer["parting"]["b"] == first
    recall = next(one for one in answer["figures"] if one["name"] == "recall")
    assert recall["a"] == 1.0 and 0 <= recall["b"] < 1
    revisions = next(one for one in answer["figures"] if one["name"] == "revisions")
    assert (revisions["a"], revisions["b"]) == (0, run.head)
    append(local_team(), session(user("Hi."), external_id="another"), count, source="test")
    two = signed_in().get("/api/v1/sessions/run/compare?with=another&with_run=managed")
    assert two.status_code == 422 and "within one session" in two.json()["detail"]


@pytest.mark.usefixtures("jobs_wait")
def test_usage_is_of_the_contexts_that_the_model_saw(program: Program) -> None:
    first = program.post(STEPS, {"messages": [said("Go.")]})
    talk = [said("Go."), *turn(1)]
    sent = {"usage": USAGE, "context_id": first["context_id"]}
    program.post(STEPS, {"messages": talk, "history": True, **sent})
    measure(Session.objects.get())
    figures = program.get("/sessions/run/compare?with_run=managed")["figures"]
    sides = {one["name"]: (one["a"], one["b"]) for one in figures}
    assert sides["uncached"] == sides["peak"] == (None, 90)
