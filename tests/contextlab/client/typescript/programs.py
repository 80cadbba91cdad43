"""Programs of clients/typescript/tests, built by `make`, and a server and providers."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from contextlab.client import ContextLab
from tests.conftest import ROOT, unavailable
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_examples import key_of
from tests.contextlab.client.test_reading_back import LAST, LOG, reads
from tests.contextlab.proxy.test_proxy_openai import gpt
from tests.provider import Answer, Text
from tests.provider_openai import Json

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
