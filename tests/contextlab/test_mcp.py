"""The MCP server, asked by the official client over stdio and over HTTP."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from contextlab.client import ContextLab
from tests.conftest import free_port, wait_until
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.test_reading_back import LAST, LOG, answered, history, ref_in

__all__ = ["lab"]

TOOLS = {"read_back", "search_memory", "why_forgotten", "session_status", "compact_now"}


@pytest.fixture(scope="module")
def ref(lab: ContextLab) -> str:
    """What a stub of the session `long` names; its board has a note."""
    session = lab.session("long", model="claude-sonnet-4-5")
    session.append(history())
    session.note("knowledge", "Kelp grows in the harbor.")
    context = session.context()
    session.append([answered("It works."), {"role": "user", "content": "Go on."}])
    session.context()
    return ref_in({"messages": context.messages})


def command(lab: ContextLab, *more: str) -> list[str]:
    return [sys.executable, "-m", "contextlab.cli", "mcp", "--url", lab.url, *more]


async def asked(client: Client, tool: str, **given: Any) -> Any:
    """The result of a tool that must succeed."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, result
    return result.structured_content or result.content[0].text


async def test_an_agent_asks_over_stdio(lab: ContextLab, ref: str, tmp_path: Path):
    program, *arguments = command(lab, "--key", key_of(lab), "--session", "long")
    parameters = StdioServerParameters(
        command=program, args=arguments, env={"CONTEXTLAB_DATA_DIR": str(tmp_path)}
    )
    async with Client(stdio_client(parameters)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        assert LAST in await asked(client, "read_back", ref=ref, grep=LAST)
        found = (await asked(client, "search_memory", query="kelp"))["found"]
        assert "harbor" in found[0]["text"]
        why = await asked(client, "why_forgotten", text=LOG.splitlines()[1500])
        assert (why["run"], why["stays"][-1]["state"]) == ("balanced@1", "retrievable")
        lab.session("imported").append([{"role": "user", "content": "Mind the heron."}])
        why = await asked(client, "why_forgotten", text="heron", session="imported")
        assert why["run"] == "recorded"
        assert (await asked(client, "session_status"))["external_id"] == "long"
        assert (await asked(client, "compact_now", instructions="Keep paths."))["job"]
        wrong = await client.call_tool("read_back", {"ref": "m99.0@00000000"})
        assert wrong.is_error
        assert "Copy the reference" in wrong.content[0].text
        missing = await client.call_tool("session_status", {"session": "none"})
        assert missing.is_error


@pytest.fixture(scope="module")
def address(lab: ContextLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An MCP server that listens on HTTP."""
    at = free_port()
    server = subprocess.Popen(
        command(lab, "--http", "--port", str(at)), cwd=tmp_path_factory.mktemp("mcp")
    )
    address = f"http://127.0.0.1:{at}/mcp"
    wait_until(lambda: refused(address) == 401)
    yield address
    server.terminate()
    server.wait()


def refused(address: str) -> int:
    """The status of a request without a key; 0 while nothing listens."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, b"{")).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        pass
    return 0


async def test_each_request_over_http_brings_its_key(lab: ContextLab, ref: str, address: str):
    for key, status in ((key_of(lab), "long"), ("clk_unknown", "")):
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
        async with http, Client(streamable_http_client(address, http_client=http)) as client:
            result = await client.call_tool("session_status", {"session": "long"})
            assert result.is_error is not bool(status)
            if status:
                assert result.structured_content["external_id"] == status
                assert LAST in await asked(client, "read_back", ref=ref, session="long", grep=LAST)
                nameless = await client.call_tool("session_status", {})
                assert "Which session?" in nameless.content[0].text


def test_it_needs_a_key(lab: ContextLab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("CONTEXTLAB_TOKEN", raising=False)
    ended = subprocess.run(command(lab), capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert "CONTEXTLAB_TOKEN" in ended.stderr
