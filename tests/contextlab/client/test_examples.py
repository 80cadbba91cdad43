"""The programs that the READMEs and the page for a first session show run as they are."""

from __future__ import annotations

import html
import re
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab
from tests.conftest import ROOT
from tests.contextlab.client.test_client import TOOL, claude, lab, model
from tests.contextlab.client.test_reading_back import LAST, LOG, reads, script, use
from tests.provider import Answer, Provider, Text

__all__ = ["claude", "lab", "model", "script"]


def key_of(lab: ContextLab) -> str:
    return str(lab._http.headers["Authorization"].split()[1])


def test_the_loop_of_the_clients_readme(
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    script: list[Any],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("CONTEXTLAB_TOKEN", key_of(lab))
    monkeypatch.setattr("anthropic.Anthropic", lambda: claude)
    found = re.search(
        r"```python\n(.*?)```", (ROOT / "clients/python/README.md").read_text(), re.DOTALL
    )
    assert found
    program = found[1].replace("http://127.0.0.1:8765", lab.url).replace('"the result"', "LOG")
    program = program.replace('TOOLS = "You fix tests.", []', 'TOOLS = "You fix tests.", [TOOL]')
    script += [Answer((use("t1", "Bash", command="make test"),), "tool_use"), reads(), Text("Yes.")]
    known: dict[str, Any] = {"LOG": LOG, "TOOL": TOOL | {"name": "Bash"}}
    exec(program, known)
    known["lab"].close()
    assert known["reply"].content[0].text == "Yes."
    assert [tool["name"] for tool in model.bodies[-1]["tools"]] == ["Bash", "read_back"]
    assert LAST in str(model.bodies[-1]["messages"][-1])
    assert [body["system"][0]["text"] for body in model.bodies] == ["You fix tests."] * 3
    last = lab.request("GET", "sessions/my-run/messages")["messages"][-1]
    assert (last["role"], last["call"]) == ("assistant", known["reply"].id)


def test_the_wrapped_client_of_the_readme(
    lab: ContextLab,
    claude: anthropic.Anthropic,
    script: list[Any],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("contextlab.client.wrapped.ContextLab", lambda: lab)
    monkeypatch.setattr("anthropic.Anthropic", lambda: claude)
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found
    script += [Text("It is fixed.")]
    known: dict[str, Any] = {}
    exec(found[1], known)
    asked = [{"role": "user", "content": "Fix the failing test."}]
    known["claude"].messages.create(max_tokens=64, model="claude-sonnet-5", messages=asked)
    last = lab.request("GET", "sessions/my-run/messages")["messages"][-1]
    assert "It is fixed." in str(last["content"]) and last["call"]


def test_the_program_of_the_page_for_a_first_session(
    lab: ContextLab,
    claude: anthropic.Anthropic,
    script: list[Any],
    monkeypatch: pytest.MonkeyPatch,
):
    page = (ROOT / "templates/record/first_run.html").read_text()
    found = re.search(r'<code id="client">(.*?)</code>', page, re.DOTALL)
    assert found
    filled = found[1].replace("{{ base_url }}", lab.url).replace("clk_…", key_of(lab))
    monkeypatch.setattr("anthropic.Anthropic", lambda: claude)
    script += [Text("It is fixed.")]
    known: dict[str, Any] = {}
    exec(html.unescape(re.sub(r"</?b[^>]*>", "", filled)), known)
    known["session"]._server.close()
    assert lab.request("GET", "sessions/my-first-run")["steps"] == 1
