"""Masking what comes in, on the ways that agents take: the proxy, a push of logs, and MCP."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from contextlab.client import ContextLab
from contextlab.client.push import Sent, push
from tests.conftest import ROOT, Server, wait_until
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_push import log, messages
from tests.contextlab.client.test_reading_back import WITH, use
from tests.contextlab.proxy.test_proxy import agent, key_of, proxy
from tests.contextlab.test_mcp import asked, command
from tests.empty_store import DATABASE
from tests.provider import Answer, Provider

__all__ = ["lab", "model"]

KEY = "sk-ant-api03-" + "Ab3dEf9h" * 10
NAME = "Ines Okafor"
INDEXES = ("agent_sessions_blockwords", "agent_sessions_namegrams")
"""Hashed words, and groups of three characters of names: SQLite cannot list them."""
PLANTED = f"the key of {NAME} is {KEY}"


@pytest.fixture(scope="module")
def served(own_server: Server) -> Server:
    """Its store is searched here."""
    return own_server


@pytest.fixture(autouse=True)
def masking(served: Server) -> None:
    """Mask keys and a name before they are stored."""
    environment = {
        **os.environ,
        "CONTEXTLAB_DATA_DIR": str(served.data_dir),
        "PYTHONPATH": str(ROOT),
    }
    for arguments, text in ((("add", "PERSON"), NAME), (("incoming", "on"), "")):
        asks = [sys.executable, "-m", "contextlab.cli", "masking", *arguments]
        done = subprocess.run(asks, env=environment, input=text, capture_output=True, text=True)
        assert not done.returncode or "There is a rule PERSON" in done.stderr, done.stderr


def holders(served: Server, secret: str) -> set[str]:
    """Tables that hold a secret, compressed or not."""
    found = set()
    with sqlite3.connect(served.data_dir / DATABASE) as store:
        tables = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()

        for (table,) in tables:
            if table in INDEXES:
                continue
            for row in store.execute(f'SELECT * FROM "{table}"'):
                if any(secret.encode() in _plain(value) for value in row):
                    found.add(table)
    return found


def _plain(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode()
    try:
        return data + zlib.decompress(data)
    except zlib.error:
        return data


def check(served: Server, lab: ContextLab, name: str, least: int) -> None:
    """The session has masks, and the store no secret but the rule's own words."""
    counts = lab.request("GET", f"sessions/{name}/masked")["masked"]
    assert set(counts) == {"API_KEY", "PERSON"}
    assert min(counts.values()) >= least
    assert holders(served, KEY) == set()
    assert holders(served, NAME) == {"agent_sessions_maskingrule"}


def test_calls_through_the_proxy(served: Server, lab: ContextLab, model: Provider) -> None:
    model.answer = lambda _: Answer((use("t9", "Bash", command=f"curl {KEY}"),), "tool_use")
    given = {**WITH, "system": PLANTED, "messages": [{"role": "user", "content": PLANTED}]}
    address = f"{{}}/{key_of(lab)}/anthropic"
    with (
        proxy(lab.url, model) as url,
        agent(address.format(url), x_claude_code_session_id="proxied") as client,
    ):
        reply = client.messages.create(**given)
    assert reply.content[0].to_dict()["input"] == {"command": f"curl {KEY}"}
    assert model.bodies[0]["messages"][0]["content"] == PLANTED
    check(served, lab, "proxied", least=2)


def test_logs_that_are_pushed(served: Server, lab: ContextLab, tmp_path: Path) -> None:
    log(tmp_path / "projects", "pushed", 3, PLANTED)
    rows = Sent(tmp_path, "http://nowhere", "clk_x")
    assert [one.problem for one in push(lab, rows, [tmp_path / "projects"])] == [""]
    rows.close()
    wait_until(lambda: messages(lab, "pushed") == 3)
    check(served, lab, "pushed", least=3)


async def test_what_an_agent_says_over_mcp(served: Server, lab: ContextLab, tmp_path: Path) -> None:
    session = lab.session("talked", model="claude-sonnet-4-5", policy="balanced")
    session.append([{"role": "user", "content": PLANTED}])
    session.context()
    program, *arguments = command(lab, "--key", key_of(lab), "--session", "talked")
    parameters = StdioServerParameters(
        command=program, args=arguments, env={"CONTEXTLAB_DATA_DIR": str(tmp_path)}
    )
    async with Client(stdio_client(parameters)) as client:
        assert (await asked(client, "compact_now", instructions=f"Keep that {PLANTED}."))["job"]
        read = await asked(client, "read_back", ref="1")
    assert KEY not in str(read)
    check(served, lab, "talked", least=1)
