"""The stand-in itself: the real SDK must read all that it says as it would from the provider."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.provider import (
    Answer,
    Broken,
    ErrorInStream,
    Overloaded,
    Provider,
    RateLimited,
    Raw,
    Refusal,
    Text,
    provider,
)

ASK: dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "hello"}],
}


@pytest.fixture
def it() -> Iterator[Provider]:
    with provider() as made:
        yield made


@pytest.fixture
def client(it: Provider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="test", base_url=it.url, max_retries=0) as made:
        yield made


def test_answers_whole_and_streamed_are_the_same(it: Provider, client: anthropic.Anthropic) -> None:
    answer = Answer(
        (
            {"type": "thinking", "thinking": "so it is", "signature": "sig"},
            {"type": "text", "text": "a longer text"},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a", "n": 1}},
        ),
        "tool_use",
    )
    it.then(answer, answer)
    whole = client.messages.create(**ASK)
    with client.messages.stream(**ASK) as stream:
        streamed = stream.get_final_message()
    assert [b.type for b in whole.content] == ["thinking", "text", "tool_use"]
    assert [b.to_dict() for b in streamed.content] == [b.to_dict() for b in whole.content]
    assert streamed.stop_reason == whole.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 1
    assert [body["messages"] for body in it.bodies] == [ASK["messages"]] * 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (RateLimited(7), anthropic.RateLimitError),
        (Overloaded(), anthropic.InternalServerError),
        (Broken(Text("half of it")), anthropic.APIConnectionError),
    ],
)
def test_failures_are_those_of_the_sdk(
    it: Provider, client: anthropic.Anthropic, reply: Any, error: type[Exception]
) -> None:
    it.then(reply)
    with pytest.raises(error) as raised:
        client.messages.create(**ASK)
    if isinstance(raised.value, anthropic.RateLimitError):
        assert raised.value.response.headers["retry-after"] == "7"
    assert client.messages.create(**ASK).content[0].to_dict() == {"type": "text", "text": "ok"}


def test_streams_that_break_and_streams_that_err(it: Provider, client: anthropic.Anthropic) -> None:
    import httpx2

    it.then(Broken(Text("one two three four five")), ErrorInStream(Text("one two three")))
    with pytest.raises(httpx2.RemoteProtocolError), client.messages.stream(**ASK) as stream:
        stream.get_final_message()
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(**ASK) as stream:
        stream.get_final_message()


def test_refusals_empty_answers_and_foreign_pages(
    it: Provider, client: anthropic.Anthropic
) -> None:
    it.then(Refusal(), Text(""), Raw(b"<html>", 502, "text/html"))
    assert client.messages.create(**ASK).stop_reason == "refusal"
    assert client.messages.create(**ASK).content == []
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(**ASK)


def test_what_breaks_the_rules_is_refused_and_uses_no_answer_up(
    it: Provider, client: anthropic.Anthropic
) -> None:
    it.then(Text("kept for later"))
    with pytest.raises(anthropic.BadRequestError, match="user role"):
        client.messages.create(**{**ASK, "messages": [{"role": "assistant", "content": "hi"}]})
    assert len(it.refused) == 1
    assert client.messages.create(**ASK).content[0].to_dict()["text"] == "kept for later"
    tokens = client.messages.count_tokens(model="claude-test", messages=ASK["messages"])
    assert tokens.input_tokens > 1
