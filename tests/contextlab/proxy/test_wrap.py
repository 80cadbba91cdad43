"""`contextlab wrap`: an agent that knows nothing of us, its calls recorded."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from contextlab.agents import pointed_at
from contextlab.client import ContextLab
from sessions.templatetags.commands import command
from tests.conftest import ROOT
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import kinds
from tests.contextlab.proxy.test_proxy import NOWHERE, key_of, proxy
from tests.provider import Provider

__all__ = ["lab", "model"]

AGENT = """
import anthropic, sys
with anthropic.Anthropic(default_headers={"x-session-id": "wrapped-agent"}) as client:
    said = [{"role": "user", "content": "Hello."}]
    reply = client.messages.create(model="claude-sonnet-5", max_tokens=9, messages=said)
    print(reply.content[0].text)
sys.exit(int(sys.argv[1]))
"""


AT = {"anthropic": "http://a", "openai": "http://o/v1", "gemini": "http://g"}


def wrapped(
    tmp_path: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    env = os.environ | {
        "CONTEXTLAB_DATA_DIR": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        **environment,
    }
    command = [sys.executable, "-m", "contextlab.cli", "wrap", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mode", [(), ("--manage",)])
def test_an_agent_is_recorded_and_its_exit_code_kept(
    lab: ContextLab, model: Provider, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    given = ("--server", lab.url, "--key", key_of(lab), *mode)
    agent = (sys.executable, "-c", AGENT, "3")
    done = wrapped(tmp_path, *given, *agent, ANTHROPIC_BASE_URL=model.url, ANTHROPIC_API_KEY="none")
    assert (done.stdout, done.returncode) == ("ok\n", 3), done.stderr
    assert f"See its sessions on {lab.url}/sessions/" in done.stderr
    assert model.bodies[0]["messages"][0]["content"]
    assert kinds(lab, "wrapped-agent")[:2] == [["text"], ["text"]]


@pytest.mark.parametrize(
    ("number", "at", "many"),
    [(0, "{{ base_url }}/proxy", 3), (1, "http://127.0.0.1:8766/proxy", 4)],
    ids=["of the server", "own"],
)
def test_the_addresses_of_the_page_for_a_first_session(
    lab: ContextLab, model: Provider, number: int, at: str, many: int
) -> None:
    page = (ROOT / "templates/record/first_run.html").read_text()
    shown = re.findall(r'<code id="proxy">(.*?)</code>', page, re.DOTALL)[number]
    filled = re.sub(r"</?b[^>]*>", "", shown).replace("clk_…", key_of(lab))
    exports = [line for line in filled.splitlines() if line.startswith("export ")]
    with proxy(lab.url, model) as url:
        lines = "\n".join(exports).replace(at, url)
        agent = shlex.join([sys.executable, "-c", AGENT, "0"])
        subprocess.run(
            ["/bin/sh", "-ec", f"{lines}\n{agent}"],
            env={**os.environ, "ANTHROPIC_API_KEY": "none", "PYTHONPATH": str(ROOT)},
            check=True,
        )
    assert len(exports) == many
    assert kinds(lab, "wrapped-agent")[:2] == [["text"], ["text"]]


def test_a_command_of_a_page_works_in_the_folder_of_a_project(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", command("wrap")], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Name an agent" in done.stderr


def test_agents_are_pointed_at_the_proxy_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", '{"provider": {"openai": {"options": {"a": 1}}}}')
    codex = pointed_at(AT, ["/bin/codex", "exec", "Hi"])
    assert codex.command[:2] == ["/bin/codex", "-c"]
    assert 'base_url="http://o/v1"' in codex.command[4]
    assert codex.command[-2:] == ["exec", "Hi"]
    opencode = pointed_at(AT, ["opencode", "run", "Hi"])
    assert opencode.command == ["opencode", "run", "Hi"]
    assert json.loads(opencode.environment["OPENCODE_CONFIG_CONTENT"])["provider"] == {
        "anthropic": {"options": {"baseURL": "http://a/v1"}},
        "openai": {"options": {"a": 1, "baseURL": "http://o/v1"}},
    }
    other = pointed_at(AT, ["agent"])
    assert other.environment == {
        "ANTHROPIC_BASE_URL": "http://a",
        "OPENAI_BASE_URL": "http://o/v1",
        "OPENAI_API_BASE": "http://o/v1",
        "GOOGLE_GEMINI_BASE_URL": "http://g",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name an agent"),
        (("no-such-agent",), "There is no command 'no-such-agent'"),
        (("--server", NOWHERE, sys.executable), "does not answer"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = wrapped(tmp_path, *arguments)
    assert done.returncode
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
