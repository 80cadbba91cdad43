"""Every way to call a model through a client of `anthropic`: managed, or refused with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, NotManaged, wrap
from tests.contextlab.client.test_client import claude, lab, model, said, stored
from tests.contextlab.client.test_reading_back import LAST, WITH, history, kinds, reads, script
from tests.provider import Provider, Text

__all__ = ["claude", "lab", "model", "script"]


def streamed(client: Any) -> str:
    with client.messages.with_streaming_response.create(messages=history(), **WITH) as response:
        return str(response.parse().content[-1].text)


def helped(client: Any) -> str:
    with client.beta.messages.stream(messages=history(), **WITH) as stream:
        return str(stream.get_final_message().content[-1].text)


@anthropic.beta_tool(name="Bash")
def bash(command: str) -> str:
    """Run a command.

    Args:
        command: as in a shell
    """
    return f"{command}: no such file"


def run_by_the_sdk(client: Any, **more: Any) -> str:
    given = {**WITH, "tools": [bash], **more}
    runner = client.beta.messages.tool_runner(messages=history(), **given)
    return str(runner.until_done().content[-1].text)


WAYS: dict[str, Callable[[Any], str]] = {
    "raw": lambda client: (
        (
            client.messages.with_raw_response.create(messages=history(), **WITH).parse().content[-1]
        ).text
    ),
    "bytes": streamed,
    "beta": lambda client: client.beta.messages.create(messages=history(), **WITH).content[-1].text,
    "beta stream": helped,
    "parse": lambda client: client.messages.parse(messages=history(), **WITH).content[-1].text,
    "runner": lambda client: run_by_the_sdk(client, thread=False),
    "copy": lambda client: (
        (
            client.with_options(timeout=20).messages.create(messages=history(), **WITH).content[-1]
        ).text
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_read_back_is_answered_whatever_the_way_to_the_model(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any], way: str
) -> None:
    script += [reads(), Text(f"It ends with {LAST}.")]
    client = wrap(claude, session=f"way {way}", server=lab)
    assert isinstance(client, anthropic.Anthropic)
    assert WAYS[way](client) == f"It ends with {LAST}."
    assert kinds(lab, f"way%20{way.replace(' ', '%20')}")[3:] == [
        ["text", "read_back"], ["tool_result"], ["text"],
    ]  # fmt: skip
    assert lab.request("GET", f"sessions/way%20{way.replace(' ', '%20')}")["steps"] == 3


def test_clients_of_clouds_are_managed(lab: ContextLab, model: Provider) -> None:
    at: Any = {"base_url": model.url, "max_retries": 0}
    vertex: Any = {"region": "kelp", "project_id": "sea", "access_token": "none", **at}
    ask: Any = {"messages": said("Hi."), "model": "claude-sonnet-5", "max_tokens": 100}
    model.then(*(Text(name) for name in ("bedrock", "vertex", "stream", "later")))

    async def later() -> str:
        async with wrap(
            anthropic.AsyncAnthropicVertex(**vertex), "cloud-later", server=lab
        ) as client:
            return str((await client.messages.create(**ask)).content[0].text)

    with (
        wrap(
            anthropic.AnthropicBedrock(aws_region="kelp", api_key="none", **at),
            "cloud-bedrock",
            server=lab,
        ) as bedrock,
        wrap(anthropic.AnthropicVertex(**vertex), "cloud-vertex", server=lab) as client,
    ):
        assert bedrock.messages.create(**ask).content[0].text == "bedrock"
        assert client.beta.messages.create(**ask).content[0].text == "vertex"
        ask["messages"] = said("Hi.", "vertex", "On.")
        with client.messages.stream(**ask) as stream:
            assert stream.get_final_text() == "stream"
        ask["messages"] = said("Hi.")
        assert asyncio.run(later()) == "later"
    assert not model.refused
    assert all(body["messages"][-1]["content"][-1]["cache_control"] for body in model.bodies)
    texts = [[text for _, text, _ in stored(lab, f"cloud-{name}")] for name in ("bedrock", "later")]
    assert texts == [["bedrock"], ["later"]]
    assert [text for _, text, _ in stored(lab, "cloud-vertex")] == ["vertex", "stream"]


def test_what_cannot_be_managed_is_refused_and_not_sent(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic
) -> None:
    client = wrap(claude, session="refused ways", server=lab)
    params: Any = {"messages": said("Hi."), "model": "claude-sonnet-5", "max_tokens": 1}
    with pytest.raises(NotManaged, match="POST /v1/messages/batches: .* Nothing was sent"):
        client.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
    with pytest.raises(NotManaged, match="/v1/complete"):
        client.post("/v1/complete", body=params, cast_to=object)
    with pytest.raises(NotManaged, match="`thread=False`.* Nothing was sent"):
        run_by_the_sdk(client)
    assert not model.bodies
    counted = client.messages.count_tokens(messages=said("Hi."), model="claude-sonnet-5")
    assert counted.input_tokens
    with pytest.raises(TypeError, match=r"clients? of the packages anthropic or openai, not dict"):
        wrap({}, session="x", server=lab)
