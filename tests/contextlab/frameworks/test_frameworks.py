"""Agents of frameworks that only read an address: each managed through the proxy.

They are heavy, so they are no part of the dev group. To run all:

    python -m venv F && F/bin/pip install langchain langchain-openai langchain-anthropic \
        openai-agents 'pydantic-ai-slim[anthropic,google,openai]' litellm smolagents \
        google-genai claude-agent-sdk
    CONTEXTLAB_FRAMEWORKS=F/bin/python python -m pytest -n 0 tests/contextlab/frameworks
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contextlab.client import ContextLab
from tests import provider_gemini, provider_openai
from tests.conftest import wait_until
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_reading_back import kinds
from tests.contextlab.frameworks.programs import (
    AGENTS,
    CLAUDE,
    GEMINI,
    GPT,
    GPT_WITH_STOPS,
    PARTS,
)
from tests.contextlab.proxy.test_proxy import key_of, proxy
from tests.provider import Answer, Provider, Text, provider

__all__ = ["lab"]

Json = dict[str, Any]
PYTHON = os.environ.get("CONTEXTLAB_FRAMEWORKS", "")

pytestmark = pytest.mark.skipif(
    not PYTHON, reason="CONTEXTLAB_FRAMEWORKS names no Python with agent frameworks"
)


def has_read_part(body: Json) -> str:
    """The agent's name of the tool; empty if the request lists none, as a side call."""
    found = re.search(r'"(\w*read_part)"', json.dumps(body.get("tools", [])))
    return found[1] if found else ""


class Providers:
    """All three: each asks for one part after the other, and then says so."""

    def __init__(self, stack: ExitStack) -> None:
        self.claude: Provider = stack.enter_context(provider())
        self.gpt = stack.enter_context(provider_openai.openai_provider())
        self.gemini = stack.enter_context(provider_gemini.gemini_provider())
        self.claude.answer, self.gpt.answer = self._claude, self._gpt
        made = (
            [
                {"text": f"Part {one} is next.", "thought": True},
                *provider_gemini.Calls("read_part", f"c{one}", number=one),
            ]
            for one in range(1, PARTS + 1)
        )
        self.gemini.then(*made, provider_gemini.Says("All read."))
        self._parts = iter(range(1, PARTS + 1))

    def _claude(self, body: Json) -> Answer:
        name = has_read_part(body)
        number = next(self._parts, None) if name else None
        if number is None:
            return Text("All read.")
        given = {"type": "tool_use", "id": f"toolu_{number}", "input": {"number": number}}
        # The API refuses thinking turned on after an answer without it.
        thought = {"type": "thinking", "thinking": "Go on.", "signature": f"sig-{number}"}
        return Answer((thought, {**given, "name": name}), "tool_use")

    def _gpt(self, body: Json) -> provider_openai.Reply:
        number = next(self._parts, None)
        if not body.get("tools") or "<code>" in json.dumps(body.get("messages", [None])[0]):
            code = f"print(read_part({number}))" if number else 'final_answer("All read.")'
            said = f"Thought: go on.\n<code>\n{code}\n"
            return provider_openai.Says(said if body.get("stop") else f"{said}</code>")
        if number is not None:
            return provider_openai.Calls("read_part", number=number)
        if "final_answer" in json.dumps(body["tools"]):  # as smolagents wants it
            return provider_openai.Calls("final_answer", answer="All read.")
        return provider_openai.Says("All read.")

    @property
    def addresses(self) -> dict[str, str]:
        """By the proxy's name."""
        return {"anthropic": self.claude.url, "openai": self.gpt.url, "gemini": self.gemini.url}

    @property
    def bodies(self) -> list[Json]:
        """The requests of the task."""
        asked = [*self.claude.bodies, *self.gpt.bodies, *self.gemini.bodies]
        return [body for body in asked if has_read_part(body)]

    @property
    def refused(self) -> list[str]:
        """Why requests broke the rules."""
        return [*self.claude.refused, *self.gpt.refused, *self.gemini.refused]


@pytest.fixture
def providers() -> Iterator[Providers]:
    with ExitStack() as stack:
        yield Providers(stack)


def ran(name: str, address: str, home: Path) -> str:
    """What an agent says in the end, in an environment of its own."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    env |= {"ANTHROPIC_BASE_URL": f"{address}/anthropic", "ANTHROPIC_API_KEY": "none"}
    env |= {"OPENAI_BASE_URL": f"{address}/openai/v1", "OPENAI_API_KEY": "none"}
    env |= {"GOOGLE_GEMINI_BASE_URL": f"{address}/gemini", "GEMINI_API_KEY": "none"}
    env |= {"ENABLE_TOOL_SEARCH": "false"}  # Claude Code would list the tool later
    env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # else it asks for one
    program = str(Path(__file__).with_name("programs.py"))
    done = subprocess.run(
        [PYTHON, program, name], env=env, cwd=home, capture_output=True, text=True
    )
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def has_costs(lab: ContextLab, name: str) -> bool:
    """Whether each step has its cost, which follows soon."""
    cost = lab.request("GET", f"sessions/{name}/manifest")["steps"]["cost"]
    return len(cost) == PARTS + 1 and all(cost)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_managed_and_its_context_usage_and_cost_come_in(
    lab: ContextLab, providers: Providers, tmp_path: Path, name: str
) -> None:
    with proxy(lab.url, providers.addresses, patience=20) as url:
        said = ran(name, f"{url}/{key_of(lab)}/manage", tmp_path)
    assert "All read." in said
    assert not providers.refused
    listed = lab.request("GET", "sessions", query={"limit": 20})["sessions"]
    [session] = [one for one in listed if one["title"].endswith(f" {name}.")]
    assert session["model"] in (CLAUDE, GEMINI, GPT, GPT_WITH_STOPS)
    called = [kind for message in kinds(lab, session["id"]) for kind in message]
    assert session["steps"] == PARTS + 1
    wait_until(lambda: has_costs(lab, session["id"]))
    if name == "smolagents-code":  # results of code are texts, which are not offloaded
        sent = [body["messages"] for body in providers.gpt.bodies]
        assert all(new[: len(old)] == old for old, new in pairwise(sent)), "the cache is kept"
        return
    assert "read_back" in json.dumps(providers.bodies[-1]["tools"]), "managed"
    assert called.count("tool_result") == PARTS
    assert not re.search("No result|no longer in this context", json.dumps(providers.bodies[-1]))
