"""The TypeScript client: real SDKs in Node, a running server, and providers of our own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contextlab.client import ContextLab
from tests.conftest import ROOT, Server, free_port, unavailable, wait_until
from tests.contextlab.client.test_client import TOOL, lab, model
from tests.contextlab.client.test_client_budgets import limit
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.test_paused import act
from tests.contextlab.client.test_reading_back import (
    LAST,
    LOG,
    check_prefixes,
    kinds,
    reads,
    use,
)
from tests.contextlab.proxy.test_proxy_openai import contents, gpt
from tests.contextlab.proxy.test_proxy_openai import reads as reads_gpt
from tests.provider import Answer, Overloaded, Provider, Text
from tests.provider_openai import Calls, Json, OpenAIProvider, Says

__all__ = ["gpt", "lab", "model"]

CLIENT = ROOT / "clients/typescript"
WHOLE = f"Let me look. It ends with {LAST}."


class Programs:
    """Runs the programs of clients/typescript/tests, built by `make`."""

    def __init__(self, lab: ContextLab) -> None:
        if not (CLIENT / "build").is_dir():
            unavailable("clients/typescript is not built: make clients/typescript/build/.built")
        self.env = {"PATH": os.environ["PATH"], "LOG": LOG}
        self.env |= {"CONTEXTLAB_URL": lab.url, "CONTEXTLAB_TOKEN": key_of(lab)}
        self.env |= {"PROVIDER": "http://nowhere", "PATIENCE": "180"}

    def begin(self, file: str, name: str, **env: str) -> subprocess.Popen[str]:
        """Start a program, which prints JSON in the end."""
        return subprocess.Popen(
            ["node", CLIENT / f"build/{file}.js", name],
            env=self.env | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, file: str, name: str, **env: str) -> Any:
        """What a program prints; what it warns of is in `warned`."""
        program = self.begin(file, name, **env)
        said, self.warned = program.communicate()
        assert program.returncode == 0, self.warned[-3000:]
        return json.loads(said)


@pytest.fixture
def node(lab: ContextLab) -> Programs:
    return Programs(lab)


def looks(body: Json) -> Answer:
    """Reads back what a stub names first, unless it has."""
    last = json.dumps(body["messages"][-1])
    return Text(f"It ends with {LAST}.") if "r1" in last else reads()(body)


def has_costs(lab: ContextLab, name: str, steps: int) -> bool:
    """Whether the replay has the cost of each step; it follows soon."""
    cost = lab.request("GET", f"sessions/{name}/manifest")["steps"]["cost"]
    return len(cost) == steps and all(cost[1:])


def test_a_read_back_is_answered_whatever_the_way_to_the_model(
    lab: ContextLab, model: Provider, node: Programs
) -> None:
    model.answer = looks
    seen = node.run("claude", "ways", PROVIDER=model.url)
    assert (len(seen), "read_back" in json.dumps(seen)) == (10, False)
    events = seen.pop("events")["events"]
    assert "".join(one.get("delta", {}).get("text", "") for one in events) == WHOLE
    starts = [one["index"] for one in events if one["type"] == "content_block_start"]
    assert (starts, events[-1]["type"]) == ([0, 1], "message_stop")
    assert seen["both"].pop("url") == f"{model.url}/v1/messages"
    for way, reply in seen.items():
        assert "".join(block["text"] for block in reply["content"]) == WHOLE, way
        assert reply["stop_reason"] == "end_turn", way
    for way in (*seen, "events"):
        name = f"ts%20{way}"
        assert kinds(lab, name)[3:] == [["text", "read_back"], ["tool_result"], ["text"]], way
        wait_until(partial(has_costs, lab, name, 3))
    assert not model.refused
    assert not any(LOG.splitlines()[1500] in json.dumps(body) for body in model.bodies)


def test_the_history_of_an_agent_goes_on(lab: ContextLab, model: Provider, node: Programs) -> None:
    model.then(Overloaded(), Text("One."), Text("Two."))
    model.answer = lambda body: reads()(body) if len(model.bodies) == 4 else Text("Three.")
    assert node.run("claude", "talk", PROVIDER=model.url) == [
        "One.", "Two.", "Let me look. Three.",
    ]  # fmt: skip
    assert not node.warned
    assert model.bodies[0] == model.bodies[1], "a retry of the SDK's own"
    check_prefixes(model)
    assert lab.request("GET", "sessions/ts%20talk")["steps"] == 5, "nothing rewound"


def test_what_cannot_be_managed_is_refused_and_not_sent(
    model: Provider, gpt: OpenAIProvider, node: Programs
) -> None:
    found = node.run("claude", "refused", PROVIDER=model.url)
    (name, why), *errors = found["errors"]
    assert (name, "takes a client of @anthropic-ai/sdk or openai" in why) == ("TypeError", True)
    errors += node.run("gpt", "refused", PROVIDER=gpt.url)
    expected = ["POST /v1/messages/batches", "POST /v1/complete", "no messages", "(`thread`)"]
    expected += ["(`thread`)", "several answers", "(previous_response_id)", "background"]
    expected += ["no input", "POST /completions", "POST /responses/compact", "POST /threads/runs"]
    for (name, why), reason in zip(errors, expected, strict=True):
        assert (name, reason in why, "Nothing was sent" in why) == ("NotManaged", True, True), why
    assert (found["counted"] > 0, model.bodies, gpt.bodies) == (True, [], [])


def test_agents_of_openai_are_managed(lab: ContextLab, gpt: OpenAIProvider, node: Programs) -> None:
    many = [Calls("shell", "c1", cmd="make test"), reads_gpt, Says("That is all."), Says("Bye.")]
    script = iter(many * 4)

    def answer(body: Json) -> Any:
        now: Any = next(script)
        return now(body) if callable(now) else now

    gpt.answer = answer
    seen = node.run("gpt", "talks", PROVIDER=gpt.url)
    assert (len(seen), node.warned) == (4, "")
    for name, it in seen.items():
        assert (it["call"], it["calls"], it["last"]) == ("c1", [], "Bye."), name
        assert it["text"].endswith("That is all."), name
        assert "read_back" not in json.dumps(it), name
        thoughts = json.dumps(it["history"]).count('"reasoning"')
        assert thoughts == ("responses" in name), "none of what is hidden"
        flat = [kind for message in kinds(lab, name) for kind in message]
        assert flat.count("read_back") == 1, name
        assert lab.request("GET", f"sessions/{name}")["steps"] == 4, "nothing rewound"
        wait_until(partial(has_costs, lab, name, 4))
    for at in range(0, 16, 4):
        assert LOG not in contents(gpt.bodies[at + 1]), "a stub stands for it"
        assert LAST in contents(gpt.bodies[at + 2]), "what it read back"
        assert "read_back" in contents(gpt.bodies[at + 3]), "the model knows what it read back"


def test_azure_parse_and_raw_responses_of_openai(gpt: OpenAIProvider, node: Programs) -> None:
    gpt.then(Says('{"port": 1}'), Says("two"), Says("three"))
    parsed, text, raw = node.run("gpt", "ways", PROVIDER=gpt.url)
    assert (parsed, text) == ('{"port": 1}', "two")
    assert raw["choices"][0]["message"]["content"] == "three"


def test_the_call_goes_out_unchanged_when_our_server_does_not_answer(
    model: Provider, node: Programs
) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    told = {"PROVIDER": model.url, "CONTEXTLAB_URL": nowhere, "CALLED": "x", "PATIENCE": "0"}
    name, said = node.run("claude", "once", **told)
    assert (name, '"text":"ok"' in said) == ("none", True)
    assert "the context is sent as it is" in node.warned
    assert [one["content"] for one in model.bodies[0]["messages"]] == ["Hi."]
    assert [tool["name"] for tool in model.bodies[0]["tools"]] == ["Bash"]


def test_a_wrapped_client_waits_until_the_session_is_resumed(
    served: Server, lab: ContextLab, model: Provider, node: Programs
) -> None:
    lab.session("ts held", model="claude-sonnet-5")
    assert act(served, "ts%20held", "pause", "look at the plan").status_code == 200
    name, said, seconds = node.run("session", "forbidden", CALLED="ts held")[0]
    assert (name, "look at the plan" in said) == ("Paused", True)
    assert 5 <= seconds <= 7.5
    program = node.begin("claude", "once", PROVIDER=model.url, CALLED="ts held")
    assert program.stdout is not None
    assert program.stdout.readline() == '"waits"\n'
    assert not model.bodies, "no call goes out while it is paused"
    assert act(served, "ts%20held", "resume", "the plan is good").status_code == 200
    said, warned = program.communicate()
    assert json.loads(said.splitlines()[-1])[0] == "none", warned
    assert len(model.bodies) == 1


def test_a_budget_refuses_the_call_before_the_model_is_asked(
    served: Server, lab: ContextLab, model: Provider, node: Programs
) -> None:
    lab.session("ts broke", model="claude-sonnet-5")
    limit(served, "ts broke", 5_000, "hard")
    assert node.run("session", "spends", CALLED="ts broke") == [True, 402, False, 1, 0]
    limit(served, "ts broke", 0, "hard")
    name, said = node.run("claude", "once", PROVIDER=model.url, CALLED="ts broke")
    assert (name, said[:4], model.bodies) == ("OverBudget", "402:", [])


def test_it_waits_what_retry_after_says_until_it_has_no_patience_left(node: Programs) -> None:
    busy, away, patient, again = node.run("session", "patience")
    assert busy["result"][0] == away["result"][0] == again["result"][0] == "none"
    assert len({*busy["slept"]}) == 9 and all(7 <= one <= 10.5 for one in busy["slept"])
    assert away["slept"][0] <= 0.2 and 5 <= away["slept"][-1] <= 10
    assert patient["result"][0] == "Unreachable" and 160 < sum(patient["slept"]) <= 180
    for one in (busy, away, patient):
        assert len({*one["keys"]}) == 1, "all attempts have one key"
    assert len({*(key for one in (busy, away, patient) for key in one["keys"])}) == 3
    assert again["keys"] == patient["keys"][:1], "the same call later carries the same key"


def test_a_session_by_itself(lab: ContextLab, node: Programs) -> None:
    seen = node.run("session", "whole")
    assert (seen["lines"], seen["version"], seen["outcome"]) == ("host kelp", 1, "succeeded")
    assert seen["subscribed"] == "kelp"
    assert "Kelp stands at port 8417." in seen["found"]
    assert "<knowledge>Kelp stands at port 8417.</knowledge>" in seen["board"]
    assert [len(messages) for messages in seen["steps"]] == [1, 2]
    assert seen["context"]["model"] == "claude-sonnet-5"
    assert "tools" not in seen["context"]
    assert seen["missing"]["is_error"] and "ref is missing" in str(seen["missing"])
    assert seen["wrong"]["is_error"] and seen["wrong"]["tool_use_id"] == "t2"
    stored = lab.request("GET", "sessions/ts%2Frun%201/messages")["messages"]
    assert [one["role"] for one in stored] == ["user", "system", "assistant"]


def test_problems_are_typed(node: Programs) -> None:
    fields, key, missing, dots = node.run("session", "problems")
    assert fields[0] == 422 and fields[1]["errors"][0]["pointer"].startswith("/messages/1/content")
    assert (key[0], missing[0], dots[0]) == (401, 404, "TypeError")


def files(route: Any) -> None:
    """Answer a page's requests for files of the package."""
    name = route.request.url.rpartition("/client/")[2]
    if name == "index.html":
        return route.fulfill(body="<!doctype html><title>Page</title>", content_type="text/html")
    return route.fulfill(path=CLIENT / "dist" / name, content_type="text/javascript")


READS = """async ([url, token]) => {
  const { ContextLab } = await import('/client/index.js');
  const lab = new ContextLab({ url, token, patience: 0 });
  try {
    const session = await lab.session('ts page', { model: 'claude-sonnet-5' });
    await session.append({ role: 'user', content: 'Hi.' });
    return (await session.context()).messages.length;
  } catch (error) {
    return error.name;
  }
}"""


def test_a_page_of_the_server_reads_a_context_and_one_from_elsewhere_does_not(
    browser: Any, served: Server, lab: ContextLab, node: Programs
) -> None:
    page = browser.new_page()
    page.route("**/client/**", files)
    read = {}
    for origin in ("http://elsewhere.test", served.address):
        page.goto(f"{origin}/client/index.html")
        read[origin] = page.evaluate(READS, [served.address, key_of(lab)])
    page.close()
    assert [*read.values()] == ["Unreachable", 1], "no CORS headers"


def test_the_packed_package_runs_the_example_of_its_readme(
    lab: ContextLab, model: Provider, node: Programs, tmp_path: Path
) -> None:
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    pack = ["npm", "pack", "--json", "--pack-destination", str(tmp_path), *quiet]
    made = json.loads(subprocess.check_output(pack, cwd=CLIENT))[0]
    names = {file["path"].partition("/")[0] for file in made["files"]}
    assert names == {"README.md", "dist", "package.json"}
    (tmp_path / "package.json").write_text("{}")
    subprocess.check_call(
        ["npm", "install", "--offline", *quiet, f"./{made['filename']}"],
        cwd=tmp_path, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert [one.name for one in (tmp_path / "node_modules").glob("[!.]*")] == ["contextlab-client"]
    (tmp_path / "node_modules/@anthropic-ai").symlink_to(CLIENT / "node_modules/@anthropic-ai")
    found = re.search(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    assert found
    program = found[1].replace("http://127.0.0.1:8765", lab.url)
    program = program.replace("'the result'", "process.env.LOG")
    program = program.replace("TOOLS = []", f"TOOLS = [{json.dumps(TOOL | {'name': 'Bash'})}]")
    (tmp_path / "run.mjs").write_text(program + "\nconsole.log(reply.content[0].text);\n")
    model.then(Answer((use("t1", "Bash", command="make test"),), "tool_use"))
    model.answer = looks
    env = node.env | {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
    said = subprocess.check_output(["node", tmp_path / "run.mjs"], env=env, text=True)
    assert said == f"It ends with {LAST}.\n"
    assert [tool["name"] for tool in model.bodies[-1]["tools"]] == ["Bash", "read_back"]
    assert lab.request("GET", "sessions/my-run/messages")["messages"][-1]["call"]
