"""The API of a real server, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import urllib.request
from typing import Any

import pytest

from tests.conftest import SESSION, Server


def contextlab(server: Server, *words: str) -> Any:
    """Run a command next to the server and return its JSON output."""
    env = {**os.environ, "CONTEXTLAB_DATA_DIR": str(server.data_dir), "DATABASE_URL": ""}
    command = [sys.executable, "-m", "contextlab.cli", *words, "--json"]
    return json.loads(subprocess.check_output(command, env=env))


def test_five_lines_of_any_client(served: Server):
    token = contextlab(served, "token", "create", "--team", "First Use")["token"]

    def call(method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(f"{served.address}/api/v1{path}", method=method)
        request.add_header("Authorization", f"Bearer {token}")
        request.add_header("Content-Type", "application/json")
        return json.load(
            urllib.request.urlopen(request, json.dumps(body).encode() if body else None)
        )

    call("PUT", "/sessions/my-run", {"agent": "mine", "model": "claude-sonnet-4-5"})
    call("POST", "/sessions/my-run/messages", {"messages": [{"role": "user", "content": "Hello"}]})
    context = call("GET", "/sessions/my-run/context?format=anthropic")
    assert {"system", "tools", "messages", "context_id"} <= set(context)
    assert context["messages"][0]["content"][0]["text"] == "Hello"

    # The operator sees it, too.
    browser = urllib.request.build_opener()
    browser.addheaders = [("Cookie", f"{SESSION}={served.cookie}")]
    page = browser.open(call("GET", "/sessions/my-run")["url"]).read().decode()
    assert "Hello" in page
    assert "my-run" in browser.open(f"{served.address}/sessions/?team=first-use").read().decode()


def ask(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, f"/api/v1{path}", body, given)
    answer = line.getresponse()
    result = answer.read()
    line.close()
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer.status, answer.headers, json.loads(result)


@pytest.mark.fault("E1")
@pytest.mark.parametrize("path", ["/sessions/x/messages", "/imports"])
def test_too_large_a_body_is_refused_before_anybody_reads_it(served: Server, path: str):
    status, _, result = ask(served, "POST", path, b" " * 70_000_000)
    assert (status, result["status"]) == (413, 413)


@pytest.mark.fault("H9")
def test_a_revoked_key_ends_at_the_next_request(served: Server):
    made = contextlab(served, "token", "create", "--team", "brief")
    bearer = {"Authorization": f"Bearer {made['token']}"}
    status, *_ = ask(served, "GET", "/sessions/none", **bearer)
    assert status == 404
    contextlab(served, "token", "revoke", made["prefix"])
    status, headers, result = ask(served, "GET", "/sessions/none", **bearer)
    assert (status, result["status"]) == (401, 401)
    assert headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.fault("H7")
def test_no_token_is_in_the_log(served: Server):
    made = contextlab(served, "token", "create", "--team", "quiet")
    bearer = {"Authorization": f"Bearer {made['token']}"}
    ask(served, "POST", "/sessions/x/messages", b"{", Content_Type="application/json", **bearer)
    ask(served, "GET", f"/nothing?token={made['token']}", **bearer)
    assert made["token"] not in served.log
