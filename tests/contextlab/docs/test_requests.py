"""The requests that the docs show: sent with curl to a server, as written and in their order."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it.token import Token

from contextlab.client import ContextLab
from tests.conftest import ROOT, Server, unavailable
from tests.contextlab.docs.test_docs import PAGES, tokens

FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
ASKS = re.compile(r"\bcurl\b|^export API=")
BEGIN = """set -eo pipefail
curl() { command curl --silent --show-error --fail-with-body --write-out '\\n' "$@"; }
"""
"""A request that is refused ends the block."""


def requests_in(token: Token) -> list[str]:
    """The blocks with requests in a part of a page, also those in tabs."""
    found = [(token.info, token.content)] if token.type == "fence" else []
    if token.type == "code_block":
        found = [(name, text) for _, name, text in FENCE.findall(token.content)]
    return [textwrap.dedent(text) for name, text in found if name == "sh" and ASKS.search(text)]


def requests_on(page: Path) -> list[str]:
    """The blocks of a page with requests."""
    return [block for token in tokens(page) for block in requests_in(token)]


WITH_REQUESTS = [str(page.relative_to(ROOT)) for page in PAGES if requests_on(page)]


class Shell:
    """A shell with the address and the key of the quick start, in a folder of its own."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        programs = folder / "bin"
        programs.mkdir()
        (programs / "contextlab").write_text(
            f'#!/bin/sh\nexec {sys.executable} -m contextlab.cli "$@"\n'
        )
        (programs / "contextlab").chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CONTEXTLAB_DATA_DIR": str(server.data_dir),
        }
        quick = tokens(ROOT / "docs/web/api.md")
        start = next(one.content for one in quick if one.content.startswith("export API="))
        start = start.replace("8765", str(server.port)).replace("my-team", "local")
        api, key = self.run(start + 'echo "$API"; echo "$KEY"').splitlines()
        self.environment |= {"API": api, "KEY": key}
        self.lab = ContextLab(server.address, key.rpartition(" ")[2])

    def run(self, block: str) -> str:
        """What a block writes; it must end well."""
        done = subprocess.run(
            ["bash", "-c", BEGIN + block],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(server_with: Any, tmp_path: Path) -> Iterator[Shell]:
    for program in ("curl", "jq"):
        if shutil.which(program) is None:
            unavailable(f"{program} is not installed")
    made = Shell(server_with(), tmp_path)
    with made.lab:
        yield made


def worked(lab: ContextLab, name: str, steps: int = 3) -> None:
    """A session with a result that policies make small at once, and short ones."""
    ports = "\n".join(f"port {number}" for number in range(5000, 9000))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find port 8417."}]
    for step in range(1, steps):
        call = {"type": "tool_use", "id": f"c{step}", "name": "Scan", "input": {"at": step}}
        result = {"type": "tool_result", "tool_use_id": f"c{step}", "content": f"{step}\n{ports}"}
        ports = ""
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    lab.session(name).append([*messages, {"role": "assistant", "content": "It is 8417."}])


def save(lab: ContextLab, name: str, age: int) -> None:
    """A version of a policy that offloads."""
    offload = {"strategy": "offload", "parameters": {"age": age, "batch": 1}}
    lab.request("PUT", f"policies/{name}", {"document": {"steps": [offload]}})


def prepare(lab: ContextLab, page: str) -> None:
    """What the requests of a page are about."""
    if page == "docs/policies/policies.md":
        for age in (1, 2, 3):
            save(lab, "ours", age)
    elif page == "docs/replay/replay.md":
        worked(lab, "my-run", 150)
        lab.session("my-run").context()
        worked(lab, "run-a")
        worked(lab, "run-b", 4)
    elif page in ("docs/memory/memory.md", "docs/search/search.md"):
        worked(lab, "my-run")
        worked(lab, "other")


def offloaded(lab: ContextLab) -> str:
    """The name of a file of the session, which has a long result now."""
    worked(lab, "my-run")
    return str(lab.session("my-run", offloads=".offloads").context().raw["files"][0])


def check(shown: str, given: str) -> None:
    """Whether an answer is the one that is shown, as far as that goes."""
    expected, answer = json.loads(shown), json.loads(given)
    answer["context_id"] = expected["context_id"]
    answer["budget"]["share"] = round(answer["budget"]["share"], 5)
    answer["budget"] = {name: answer["budget"][name] for name in expected["budget"]}
    assert {name: answer[name] for name in expected} == expected


@pytest.mark.parametrize("page", WITH_REQUESTS)
def test_requests_are_accepted_as_written(page: str, shell: Shell) -> None:
    prepare(shell.lab, page)
    context, file = "ctx_…", "m4.0@ab12cd34.txt"
    shown = [one.content for one in tokens(ROOT / page) if one.info == "json"]
    for block in requests_on(ROOT / page):
        if "offloads=" in block:
            file = offloaded(shell.lab)
        said = shell.run(block.replace("ctx_…", context).replace("m4.0@ab12cd34.txt", file))
        context = next(iter(re.findall(r"ctx_[\w-]+", said)), context)
        if shown and "format=anthropic" in block:
            check(shown.pop(), said)
    assert shown == []
