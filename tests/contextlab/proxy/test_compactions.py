"""An agent that compacts its own history while it is recorded or managed."""

from __future__ import annotations

from typing import Any

import pytest

from contextlab.client import ContextLab
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import WITH, answered, history
from tests.contextlab.proxy.test_proxy import agent, called, key_of, proxy
from tests.contextlab.proxy.test_recognized import REMINDER, SUMMARY
from tests.provider import Provider, Text

__all__ = ["lab", "model"]

BY_HAND = {"type": "text", "text": "<command-name>/compact</command-name>"}


@pytest.mark.parametrize("mode", ["manage", "observe"])
def test_the_agents_own_compaction_is_one_and_calls_go_on(
    lab: ContextLab, model: Provider, mode: str
) -> None:
    name = f"compacted-{mode}"
    after: list[Any] = [
        {"role": "user", "content": [REMINDER, SUMMARY]},
        answered("ok"),
        {"role": "user", "content": [BY_HAND, {"type": "text", "text": "Go on."}]},
    ]
    model.then(*map(Text, ("It says kelp.", "A summary.", "On it.", "Done.")))
    with proxy(lab.url, model, patience=20) as url:
        address = f"{url}/{key_of(lab)}/{mode}/anthropic"
        asked = [*history(), answered("It says kelp."), {"role": "user", "content": "Summarize."}]
        more = [*after, answered("On it."), {"role": "user", "content": "Thanks."}]
        for talk in (history(), asked, after, more):
            # A proxy's later calls, and those of one that does not know the session.
            with agent(address, x_claude_code_session_id=name, user_agent="claude-cli/2") as client:
                called(client, True, messages=talk, **WITH)
    assert not model.refused
    assert said(model.bodies[-1]) == said({"messages": more})
    if mode == "manage":
        revisions = lab.request("GET", f"sessions/{name}/revisions")["revisions"]
        assert [one["trigger"] for one in revisions] == ["entry", "manual"]
    context = lab.request("GET", f"sessions/{name}/context")
    assert said(context)[:-1] == said({"messages": more})
    found = lab.request("GET", f"sessions/{name}")
    assert (found["steps"], found["messages"]) == (6, 14)


def said(body: dict[str, Any]) -> list[str]:
    """The texts of a request, in order, however they are spread over messages."""
    contents = [one["content"] for one in body["messages"]]
    blocks = [[{"text": one}] if isinstance(one, str) else one for one in contents]
    return [block["text"] for content in blocks for block in content]
