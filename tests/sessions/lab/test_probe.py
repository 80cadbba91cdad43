"""The command `probe`: a model asked again, under both contexts of a simulation."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from compaction.context.stubs import OFFLOADED
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.lab import simulations
from sessions.actions.policies.policies import save_version
from sessions.models import Simulation
from sessions.models.lab.probed import probes
from tests.openai_rules import openai as openai_problems
from tests.provider import Answer, Overloaded, Text, provider
from tests.sessions.lab.simulated import DRAFTED, done, log, store


@pytest.fixture
def simulated(team, idle, monkeypatch) -> Simulation:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-a")
    monkeypatch.setenv("OPENAI_API_KEY", "key-o")
    store(team, log("x", 12))
    draft = save_version(team, "eager", DRAFTED, "", "", None, COMMAND)
    simulation = simulations.ask(team, {"by": "query"}, draft, [], "", COMMAND)
    done(simulation.job)
    return simulation


def probe(simulation: Simulation, *arguments: str, model: str = "claude-sonnet-4-5") -> Any:
    out = StringIO()
    given = (str(simulation.pk), "--model", model, *arguments, "--json")
    call_command("probe", *given, stdout=out)
    return json.loads(out.getvalue())


def reading(path: str) -> Answer:
    return Answer(({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": path}},))


def as_recorded(body: dict[str, Any]) -> Answer:
    """What the recorded agent did next: it read the part after the last one that it had seen."""
    asked = json.dumps(body["messages"]).count('"type": "tool_use"') + 1
    return reading(f"src/part_{asked}.py")


def test_both_contexts_are_asked_and_compared_with_what_the_agent_did(simulated):
    with provider() as it:
        it.answer = as_recorded
        found = probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "4")
        assert (found["questions"], found["stopped"], it.refused) == (8, "", [])
        recorded, managed = found["sides"]["recorded"], found["sides"]["managed"]
        assert recorded["steps"] == managed["steps"] == 4
        assert recorded["arguments"] == managed["arguments"] == recorded["tool"] == 1
        assert recorded["read_backs"] == managed["read_backs"] == recorded["imitates"] == 0
        assert managed["prompt_tokens"] < recorded["prompt_tokens"]
        sides = recorded["microusd"] + managed["microusd"]
        assert found["spent_microusd"] == sides > 0
        asked = len(it.bodies)
        again = probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "4")
        assert (again["questions"], again["sides"]) == (0, found["sides"])
        assert len(it.bodies) == asked, "nothing is asked twice"
    [stored] = probes(simulated)
    assert (stored["model"], stored["managed"]) == ("claude-sonnet-4-5", managed)


def test_a_read_back_is_answered_and_an_imitated_stub_counted(simulated):
    def answer(body: dict[str, Any]) -> Answer:
        said = json.dumps(body["messages"])
        if OFFLOADED not in said:
            return Text(f"[{OFFLOADED}: 4 lines | ref m1.0@12345678]")
        if '"name": "read_back"' in said:
            return as_recorded(body)
        ref = said.split("ref ")[1].split("]")[0].split('"')[0]
        used = {"type": "tool_use", "id": "r", "name": "read_back", "input": {"ref": ref}}
        return Answer((used,))

    with provider() as it:
        it.answer = answer
        found = probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "3")["sides"]
        assert it.refused == []
        assert (found["managed"]["read_backs"], found["recorded"]["read_backs"]) == (1, 0)
        assert (found["managed"]["imitates"], found["recorded"]["imitates"]) == (0, 1)
        assert (found["managed"]["tool"], found["recorded"]["tool"]) == (1, 0)
        results = [part for body in it.bodies for part in body["messages"][-1]["content"]
                   if part["type"] == "tool_result" and part["tool_use_id"] == "r"]  # fmt: skip
        assert results and all("def handler_" in part["content"] for part in results)


def test_it_stops_before_the_budget_is_exceeded_and_goes_on_later(simulated):
    with provider() as it:
        it.answer = as_recorded
        with pytest.raises(CommandError, match="budget is used up: 0 of 8"):
            probe(simulated, "--base-url", it.url, "--budget", "0.0001", "--steps", "4")
        assert it.bodies == []
        with pytest.raises(CommandError, match=r"budget is used up: [1-7] of 8"):
            probe(simulated, "--base-url", it.url, "--budget", "0.09", "--steps", "4")
        first = len(it.bodies)
        left = probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "4")
        assert left["questions"] == 8 - first
        assert left["sides"]["managed"]["steps"] == 4


def test_a_dry_run_asks_nothing(simulated):
    found = probe(simulated, "--base-url", "http://127.0.0.1:9", "--budget", "1", "--dry-run")
    assert found["questions"] > 0 and found["estimated_microusd"] > 0
    assert found["spent_microusd"] == 0 and found["sides"] == {}


@pytest.mark.parametrize(
    ("arguments", "model", "said"),
    [
        (("--budget", "1"), "no-such-model", "price of no-such-model is unknown"),
        (("--budget", "0"), "claude-sonnet-4-5", "dollars above 0"),
        (("--budget", "lots"), "claude-sonnet-4-5", "dollars above 0"),
    ],
)
def test_what_cannot_be_asked_says_why(simulated, arguments, model, said):
    with pytest.raises(CommandError, match=said):
        probe(simulated, *arguments, model=model)


def test_without_a_key_or_with_a_failing_provider_it_says_so(simulated, monkeypatch):
    monkeypatch.setattr("sessions.next_action.LONGEST_WAIT", 0)
    with provider() as it:
        it.then(*[Overloaded()] * 3)
        it.answer = as_recorded
        probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "1")
        it.then(*[Overloaded()] * 4)
        with pytest.raises(CommandError, match="answered 529 4 times"):
            probe(simulated, "--base-url", it.url, "--budget", "5", "--steps", "2")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(CommandError, match="ANTHROPIC_API_KEY is not set"):
        probe(simulated, "--budget", "5", "--steps", "2")


@contextmanager
def chat() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A provider of chat completions that always reads one file."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            function = {"name": "Read", "arguments": '{"file_path": "src/part_3.py"}'}
            call = {"id": "c", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            usage = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}
            said = json.dumps({"choices": [{"message": message}], "usage": usage}).encode()
            good = self.headers["Authorization"] == "Bearer key-o"
            self.send_response(200 if good and self.path == "/v1/chat/completions" else 401)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_chat_completions_are_asked_as_well(simulated):
    with chat() as (url, bodies):
        arguments = ("--api", "openai", "--base-url", url, "--budget", "5", "--steps", "11")
        found = probe(simulated, *arguments, model="gpt-5.1")["sides"]
    assert not [wrong for body in bodies for wrong in openai_problems(body)]
    sides = (found["recorded"], found["managed"])
    assert [side["prompt_tokens"] for side in sides] == [900 * side["steps"] for side in sides]
    assert 0 < found["managed"]["arguments"] < found["managed"]["tool"] <= 1
