"""A team that has used up a quota: its agents go on through the proxy, which says so."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from contextlab.client import ContextLab, Refused
from tests.conftest import ROOT, Server, wait_until
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import WITH, history
from tests.contextlab.proxy.test_proxy import agent, key_of, proxy
from tests.provider import Provider, Text

__all__ = ["lab", "model"]


@pytest.mark.parametrize("mode", ["", "manage/"])
def test_calls_pass_through_unrecorded(
    lab: ContextLab,
    model: Provider,
    served: Server,
    mode: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    quota(served, "0")
    wait_until(lambda: used_up(lab))
    model.answer = lambda _: Text("Still here.")
    name = f"beyond-{mode}"
    with (
        caplog.at_level(logging.WARNING),
        proxy(lab.url, model) as url,
        agent(f"{url}/{key_of(lab)}/{mode}anthropic", x_claude_code_session_id=name) as client,
    ):
        given = client.messages.with_raw_response.create(messages=history(), **WITH)
    assert given.parse().content[0].to_dict()["text"] == "Still here."
    assert given.headers["x-contextlab"]
    assert "a call was not stored" in caplog.text
    assert mode or "429 Quota used up" in caplog.text
    quota(served, "none")
    wait_until(lambda: not used_up(lab))
    with pytest.raises(Refused, match="404"):
        lab.request("GET", f"sessions/{name}")


def quota(served: Server, limit: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["CONTEXTLAB_DATA_DIR"] = str(served.data_dir)
    command = [sys.executable, "-m", "contextlab.cli", "quota", "--team", served.team]
    subprocess.run([*command, "--requests-day", limit], env=environment, check=True)


def used_up(lab: ContextLab) -> bool:
    """Whether the client says so, rather than left waiting for the next day."""
    try:
        lab.request("GET", "sessions")
    except Refused as error:
        assert (error.status, error.problem["quota"]) == (429, "requests_day")
        return True
    return False
