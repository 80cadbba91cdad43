"""System messages that set the effort or the tools of later turns, as Claude Code sends them."""

from __future__ import annotations

from typing import Any

from contextlab.client import ContextLab
from tests.contextlab.client.test_client import lab, model
from tests.contextlab.client.test_reading_back import WITH, answered, history
from tests.contextlab.proxy.test_proxy import agent, called, key_of, proxy
from tests.provider import Provider
from tests.provider_system import EFFORT, TOOLS

__all__ = ["lab", "model"]

NAMED = {"type": "tool_reference", "name": "Bash"}
ENVIRONMENT = {
    "role": "system",
    "content": [{"type": "text", "text": "The shell is bash."}],
    "output_config": {"effort": "medium"},
}
REMOVED = {"role": "system", "content": [{"type": "tool_removal", "tool": NAMED}]}
LOW = {"role": "system", "content": [], "output_config": {"effort": "low"}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def test_they_reach_the_model_where_the_agent_set_them(lab: ContextLab, model: Provider) -> None:
    began = [*history(), ENVIRONMENT]
    more: list[Any] = [*began, answered("ok"), user("Now without a shell."), REMOVED]
    last: list[Any] = [*more, answered("ok"), LOW, user("Be quick.")]
    given = {**WITH, "model": "claude-opus-5-5", "system": "Be careful."}
    betas = ",".join(sorted(EFFORT | TOOLS))
    with proxy(lab.url, model, patience=20) as url:
        address = f"{url}/{key_of(lab)}/manage/anthropic"
        for talk in (began, more, last, [*last, answered("ok"), user("Thanks.")]):
            # A client that does not know the session each time, which sends all of it.
            with agent(address, x_session_id="directed", anthropic_beta=betas) as client:
                called(client, True, messages=talk, **given)
    assert not model.refused
    assert [directed(body) for body in model.bodies] == [
        [ENVIRONMENT],
        [ENVIRONMENT, REMOVED],
        [ENVIRONMENT, REMOVED, LOW],
        [ENVIRONMENT, REMOVED, LOW],
    ]
    roles = [message["role"] for message in model.bodies[-1]["messages"]]
    assert roles[2:] == ["user", *("system", "assistant", "user") * 3], "before what it is for"
    assert "read_back" in str(model.bodies[-1]["tools"]), "managed"


def directed(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == "system"]
