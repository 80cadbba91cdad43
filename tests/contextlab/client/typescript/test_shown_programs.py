"""What the README of the TypeScript client and its page in docs show runs as it is."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from contextlab.client import ContextLab
from tests.conftest import ROOT
from tests.contextlab.client.test_client import TOOL
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.test_reading_back import LAST, use
from tests.contextlab.client.typescript.programs import (
    CLIENT,
    Programs,
    gpt,
    lab,
    looks,
    model,
    node,
)
from tests.provider import Answer, Provider, Text
from tests.provider_openai import OpenAIProvider, Says

__all__ = ["gpt", "lab", "model", "node"]

CALLS = """
const hi = { max_tokens: 9, messages: [{ role: 'user' as const, content: 'Hi.' }] };
const kelp = await claude.messages.create({ model: session.model, ...hi });
const moss = await gpt.chat.completions.create({ model: 'gpt-5.1', ...hi });
const [block] = kelp.content;
const said = [messages, block?.type === 'text' && block.text, moss.choices[0]?.message.content];
console.log(JSON.stringify(said));
"""


def test_the_packed_package_runs_the_example_of_its_readme(
    lab: ContextLab, model: Provider, node: Programs, tmp_path: Path
) -> None:
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    pack = ["npm", "pack", "--json", "--pack-destination", str(tmp_path), *quiet]
    made = json.loads(subprocess.check_output(pack, cwd=CLIENT))[0]
    names = {file["path"].partition("/")[0] for file in made["files"]}
    assert names == {"LICENSE", "README.md", "dist", "package.json"}
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


def test_the_snippets_of_the_docs(
    lab: ContextLab, model: Provider, gpt: OpenAIProvider, node: Programs, tmp_path: Path
) -> None:
    """One after another in one program, which is also checked as TypeScript."""
    page = (ROOT / "docs/live/typescript.md").read_text()
    program = "\n".join(re.findall(r"```ts\n(.*?)```", page, re.DOTALL))
    program = program.replace("http://127.0.0.1:8765", lab.url)
    program = program.replace("my-run", "shown-run").replace("other-run", "shown-too")
    program = program.replace("token: KEY", f"token: {json.dumps(key_of(lab))}")
    (tmp_path / "run.mts").write_text(program + CALLS)
    packages = tmp_path / "node_modules"
    packages.mkdir()
    (packages / "contextlab-client").symlink_to(CLIENT)
    for name in ("@anthropic-ai", "openai"):
        (packages / name).symlink_to(CLIENT / "node_modules" / name)
    options = ["--target", "es2022", "--module", "nodenext", "--strict", "--skipLibCheck"]
    compiler = CLIENT / "node_modules/.bin/tsc"
    types = ["--lib", "ES2024,DOM,DOM.Iterable,DOM.AsyncIterable"]
    done = subprocess.run(
        [compiler, *options, *types, "run.mts"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == ""
    model.then(Text("Kelp."))
    gpt.then(Says("Moss."))
    env = node.env | {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"}
    env |= {"OPENAI_BASE_URL": f"{gpt.url}/v1", "OPENAI_API_KEY": "none"}
    said = subprocess.check_output(["node", tmp_path / "run.mjs"], env=env, text=True)
    assert json.loads(said) == [[], "Kelp.", "Moss."]
    for name, answer in (("shown-run", "Kelp."), ("shown-too", "Moss.")):
        stored = lab.request("GET", f"sessions/{name}/messages")["messages"]
        assert answer in json.dumps(stored[-1]), name
    assert lab.request("GET", "sessions/shown-run")["agent"] == "fixer"
