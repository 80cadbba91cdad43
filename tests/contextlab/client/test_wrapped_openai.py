"""A wrapped client of `openai`: the agent sends its whole history, the model gets a context."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest

from contextlab.client import ContextLab, NotManaged, wrap
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_reading_back import LAST, LOG, kinds
from tests.contextlab.proxy.test_proxy_openai import APIS, MODEL, Agent, contents, gpt, reads
from tests.provider_openai import Calls, Json, OpenAIProvider, Says

__all__ = ["gpt", "lab"]


@pytest.fixture
def client(gpt: OpenAIProvider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="none", base_url=f"{gpt.url}/v1", max_retries=0) as made:
        yield made


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_the_model_reads_back_without_the_agent(
    lab: ContextLab, gpt: OpenAIProvider, client: openai.OpenAI, api: str, streamed: bool
) -> None:
    name = f"wrapped-{api}-{streamed}"
    replies: list[Any] = [Calls("shell", "c1", cmd="make test"), reads, Says("That is all.")]

    def answer(body: Json) -> Any:
        now = replies.pop(0) if replies else Says("Bye.")
        return now(body) if callable(now) else now

    gpt.answer = answer
    it = Agent(wrap(client, name, server=lab), api, streamed=streamed)
    _, [(_, call)] = it.ask()
    it.give(call, LOG)
    text, calls = it.ask()
    assert (text.endswith("That is all."), calls) == (True, [])
    it.history.append({"role": "user", "content": "Thanks."})
    assert it.ask()[0] == "Bye."
    assert LOG not in contents(gpt.bodies[1]), "a stub stands for it"
    assert LAST in contents(gpt.bodies[2]), "what it read back"
    assert "read_back" in contents(gpt.bodies[3]), "the model knows what it read back"
    assert "read_back" not in json.dumps([str(one) for one in [*it.history, *it.events]])
    flat = [kind for message in kinds(lab, name) for kind in message]
    assert flat.count("read_back") == 1
    found = lab.request("GET", f"sessions/{name}")
    assert found["steps"] == 4, "nothing rewound"


class Kelp(pydantic.BaseModel):
    """What a model is asked to fill in."""

    port: int


def test_parse_azure_and_asynchronous_clients(lab: ContextLab, gpt: OpenAIProvider) -> None:
    azure = openai.AzureOpenAI(
        api_key="none", azure_endpoint=gpt.url, api_version="2025-01-01", max_retries=0
    )
    hello: Any = [{"role": "user", "content": "Hi."}]
    gpt.then(Says('{"port": 8417}'), Says('{"port": 8418}'), *(Says(one) for one in "abc"))
    with wrap(azure, "azure", server=lab) as client:
        made = client.chat.completions.parse(model=MODEL, messages=hello, response_format=Kelp)
        assert made.choices[0].message.parsed == Kelp(port=8417)
        response = client.responses.parse(model=MODEL, input="Hi.", text_format=Kelp)
        assert response.output_parsed == Kelp(port=8418)

    async def later() -> None:
        inner = openai.AsyncOpenAI(api_key="none", base_url=f"{gpt.url}/v1", max_retries=0)
        async with wrap(inner, "async-gpt", server=lab) as client:
            reply = await client.chat.completions.create(model=MODEL, messages=hello)
            assert reply.choices[0].message.content == "a"
            more = [*hello, {"role": "assistant", "content": "a"}, *hello]
            chunks = await client.chat.completions.create(model=MODEL, messages=more, stream=True)
            said = [one.choices[0].delta.content or "" async for one in chunks]
            assert "".join(said) == "b"
            raw = await client.responses.with_raw_response.create(model=MODEL, input="Hi.")
            assert raw.parse().output_text == "c"

    asyncio.run(later())
    assert kinds(lab, "async-gpt")[:4] == [["text"]] * 4
    assert len(gpt.bodies) == 5


def test_what_cannot_be_managed_is_refused_and_not_sent(
    lab: ContextLab, gpt: OpenAIProvider, client: openai.OpenAI
) -> None:
    made: Any = wrap(client, "refused gpt", server=lab)
    given: Any = {"model": MODEL, "messages": [{"role": "user", "content": "Hi."}]}
    for call, why in (
        (lambda: made.chat.completions.create(**given, n=2), "several answers"),
        (lambda: made.responses.create(input="x", previous_response_id="resp_1"), "keeps the his"),
        (lambda: made.responses.create(input="x", background=True), "background"),
        (lambda: made.responses.create(prompt={"id": "p"}), "no input"),
        (lambda: made.completions.create(model=MODEL, prompt="x"), "POST /completions"),
        (lambda: made.responses.compact(model=MODEL, input="x"), "POST /responses/compact"),
        (lambda: made.post("/threads/runs", body={}, cast_to=object), "POST /threads/runs"),
        (lambda: made.responses.connect(), "a connection"),
        (lambda: made.beta.responses.connect(), "a connection"),
        (lambda: made.realtime, "a connection"),
    ):
        with pytest.raises(NotManaged, match=f"{why}.*Nothing was sent"):
            call()
    assert not gpt.bodies
